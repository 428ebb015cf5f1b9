//! Reading into a buffer: some bytes, or all that it has room for.

use std::future::Future;
use std::io;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::BufMut;
use pin_project_lite::pin_project;

use super::uninterrupted;
use crate::io::read_buf::fill_chunk;
use crate::io::{AsyncRead, ReadBuf};

pin_project! {
    /// The future of [`read`](crate::io::AsyncReadExt::read).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Read<'a, R: ?Sized> {
        reader: &'a mut R,
        buffer: &'a mut [u8],
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> Read<'a, R> {
    pub(in crate::io) fn new(reader: &'a mut R, buffer: &'a mut [u8]) -> Read<'a, R> {
        Read {
            reader,
            buffer,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for Read<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        let mut buffer = ReadBuf::new(this.buffer);
        let read = ready!(Pin::new(&mut **this.reader).poll_read(cx, &mut buffer));
        Poll::Ready(read.map(|()| buffer.filled().len()))
    }
}

pin_project! {
    /// The future of [`read_buf`](crate::io::AsyncReadExt::read_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadIntoBuf<'a, R: ?Sized, B: ?Sized> {
        reader: &'a mut R,
        target: &'a mut B,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized, B: ?Sized> ReadIntoBuf<'a, R, B> {
    pub(in crate::io) fn new(reader: &'a mut R, target: &'a mut B) -> ReadIntoBuf<'a, R, B> {
        ReadIntoBuf {
            reader,
            target,
            _pinned: PhantomPinned,
        }
    }
}

impl<R, B> Future for ReadIntoBuf<'_, R, B>
where
    R: AsyncRead + Unpin + ?Sized,
    B: BufMut + ?Sized,
{
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        if !this.target.has_remaining_mut() {
            return Poll::Ready(Ok(0));
        }
        let reader = Pin::new(&mut **this.reader);
        let (count, read) = fill_chunk(&mut **this.target, |buffer| reader.poll_read(cx, buffer));
        Poll::Ready(ready!(read).map(|()| count))
    }
}

pin_project! {
    /// The future of [`read_exact`](crate::io::AsyncReadExt::read_exact).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadExact<'a, R: ?Sized> {
        reader: &'a mut R,
        buffer: ReadBuf<'a>,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadExact<'a, R> {
    pub(in crate::io) fn new(reader: &'a mut R, buffer: &'a mut [u8]) -> ReadExact<'a, R> {
        ReadExact {
            reader,
            buffer: ReadBuf::new(buffer),
            _pinned: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadExact<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        while this.buffer.remaining() > 0 {
            let before = this.buffer.remaining();
            ready!(uninterrupted!(
                Pin::new(&mut **this.reader).poll_read(cx, this.buffer)
            ))?;
            if this.buffer.remaining() == before {
                let end = io::Error::new(io::ErrorKind::UnexpectedEof, "early eof");
                return Poll::Ready(Err(end));
            }
        }
        Poll::Ready(Ok(this.buffer.capacity()))
    }
}

//! Reading and writing numbers of a fixed length.

use std::future::Future;
use std::io;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::uninterrupted;
use crate::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The length of the longest number.
pub(in crate::io) const LONGEST: usize = 16;

pin_project! {
    /// The future of the `read_` methods that give a number.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct ReadNumber<'a, R: ?Sized, N> {
        reader: &'a mut R,
        bytes: [u8; LONGEST],
        read: usize,
        length: usize,
        decode: fn(&[u8]) -> N,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, R: ?Sized, N> ReadNumber<'a, R, N> {
    /// Reads as many bytes as `N` has; `decode` is given exactly those.
    pub(in crate::io) fn new(reader: &'a mut R, decode: fn(&[u8]) -> N) -> ReadNumber<'a, R, N> {
        ReadNumber {
            reader,
            bytes: [0; LONGEST],
            read: 0,
            length: size_of::<N>(),
            decode,
            _pinned: PhantomPinned,
        }
    }
}

impl<R: ?Sized, N> std::fmt::Debug for ReadNumber<'_, R, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadNumber")
            .field("read", &self.read)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Unpin + ?Sized, N> Future for ReadNumber<'_, R, N> {
    type Output = io::Result<N>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<N>> {
        let this = self.project();
        while this.read < this.length {
            let mut rest = ReadBuf::new(&mut this.bytes[*this.read..*this.length]);
            ready!(uninterrupted!(
                Pin::new(&mut **this.reader).poll_read(cx, &mut rest)
            ))?;
            match rest.filled().len() {
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                count => *this.read += count,
            }
        }
        Poll::Ready(Ok((this.decode)(&this.bytes[..*this.length])))
    }
}

pin_project! {
    /// The future of the `write_` methods that take a number.
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteNumber<'a, W: ?Sized> {
        writer: &'a mut W,
        bytes: [u8; LONGEST],
        written: usize,
        length: usize,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W: ?Sized> WriteNumber<'a, W> {
    /// Writes `encoded`, which has at most [`LONGEST`] bytes.
    pub(in crate::io) fn new(writer: &'a mut W, encoded: &[u8]) -> WriteNumber<'a, W> {
        let mut bytes = [0; LONGEST];
        bytes[..encoded.len()].copy_from_slice(encoded);
        WriteNumber {
            writer,
            bytes,
            written: 0,
            length: encoded.len(),
            _pinned: PhantomPinned,
        }
    }
}

impl<W: ?Sized> std::fmt::Debug for WriteNumber<'_, W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteNumber")
            .field("written", &self.written)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteNumber<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        while this.written < this.length {
            let rest = &this.bytes[*this.written..*this.length];
            match ready!(uninterrupted!(
                Pin::new(&mut **this.writer).poll_write(cx, rest)
            ))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *this.written += count,
            }
        }
        Poll::Ready(Ok(()))
    }
}

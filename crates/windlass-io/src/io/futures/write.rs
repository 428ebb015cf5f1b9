//! Writing, flushing and ending.

use std::future::Future;
use std::io::{self, IoSlice};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use pin_project_lite::pin_project;

use super::uninterrupted;
use crate::io::AsyncWrite;

/// How many parts of a `bytes::Buf` one vectored write is given at most.
const MOST_SLICES: usize = 64;

pin_project! {
    /// The future of [`write`](crate::io::AsyncWriteExt::write).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Write<'a, W: ?Sized> {
        writer: &'a mut W,
        bytes: &'a [u8],
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W: ?Sized> Write<'a, W> {
    pub(in crate::io) fn new(writer: &'a mut W, bytes: &'a [u8]) -> Write<'a, W> {
        Write {
            writer,
            bytes,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Write<'_, W> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        Pin::new(&mut **this.writer).poll_write(cx, this.bytes)
    }
}

pin_project! {
    /// The future of [`write_vectored`](crate::io::AsyncWriteExt::write_vectored).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteVectored<'a, 'b, W: ?Sized> {
        writer: &'a mut W,
        buffers: &'a [IoSlice<'b>],
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, 'b, W: ?Sized> WriteVectored<'a, 'b, W> {
    pub(in crate::io) fn new(
        writer: &'a mut W,
        buffers: &'a [IoSlice<'b>],
    ) -> WriteVectored<'a, 'b, W> {
        WriteVectored {
            writer,
            buffers,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteVectored<'_, '_, W> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        Pin::new(&mut **this.writer).poll_write_vectored(cx, this.buffers)
    }
}

/// Writes some of what `source` holds and takes it out there; from several of its parts at once if
/// the writer can.
fn poll_write_some<W: AsyncWrite + Unpin, B: Buf>(
    writer: &mut W,
    source: &mut B,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let written = if writer.is_write_vectored() {
        let mut slices = [IoSlice::new(&[]); MOST_SLICES];
        let count = source.chunks_vectored(&mut slices);
        Pin::new(writer).poll_write_vectored(cx, &slices[..count])
    } else {
        Pin::new(writer).poll_write(cx, source.chunk())
    };
    let count = ready!(written)?;
    source.advance(count);
    Poll::Ready(Ok(count))
}

pin_project! {
    /// The future of [`write_buf`](crate::io::AsyncWriteExt::write_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteBuf<'a, W, B> {
        writer: &'a mut W,
        source: &'a mut B,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W, B> WriteBuf<'a, W, B> {
    pub(in crate::io) fn new(writer: &'a mut W, source: &'a mut B) -> WriteBuf<'a, W, B> {
        WriteBuf {
            writer,
            source,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin, B: Buf> Future for WriteBuf<'_, W, B> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let this = self.project();
        if !this.source.has_remaining() {
            return Poll::Ready(Ok(0));
        }
        poll_write_some(&mut **this.writer, &mut **this.source, cx)
    }
}

pin_project! {
    /// The future of [`write_all_buf`](crate::io::AsyncWriteExt::write_all_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteAllBuf<'a, W, B> {
        writer: &'a mut W,
        source: &'a mut B,
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W, B> WriteAllBuf<'a, W, B> {
    pub(in crate::io) fn new(writer: &'a mut W, source: &'a mut B) -> WriteAllBuf<'a, W, B> {
        WriteAllBuf {
            writer,
            source,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin, B: Buf> Future for WriteAllBuf<'_, W, B> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        while this.source.has_remaining() {
            let written =
                uninterrupted!(poll_write_some(&mut **this.writer, &mut **this.source, cx));
            if ready!(written)? == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }
}

pin_project! {
    /// The future of [`write_all`](crate::io::AsyncWriteExt::write_all).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct WriteAll<'a, W: ?Sized> {
        writer: &'a mut W,
        rest: &'a [u8],
        #[pin]
        _pinned: PhantomPinned,
    }
}

impl<'a, W: ?Sized> WriteAll<'a, W> {
    pub(in crate::io) fn new(writer: &'a mut W, bytes: &'a [u8]) -> WriteAll<'a, W> {
        WriteAll {
            writer,
            rest: bytes,
            _pinned: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteAll<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        while !this.rest.is_empty() {
            match ready!(uninterrupted!(
                Pin::new(&mut **this.writer).poll_write(cx, this.rest)
            ))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => *this.rest = &this.rest[count..],
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A future that polls one function of the writer, which needs nothing else.
macro_rules! plain_future {
    ($(#[$doc:meta])+ $name:ident = $function:ident) => {
        pin_project! {
            $(#[$doc])+
            #[derive(Debug)]
            #[must_use = "futures do nothing unless you `.await` or poll them"]
            pub struct $name<'a, W: ?Sized> {
                writer: &'a mut W,
                #[pin]
                _pinned: PhantomPinned,
            }
        }

        impl<'a, W: ?Sized> $name<'a, W> {
            pub(in crate::io) fn new(writer: &'a mut W) -> $name<'a, W> {
                $name {
                    writer,
                    _pinned: PhantomPinned,
                }
            }
        }

        impl<W: AsyncWrite + Unpin + ?Sized> Future for $name<'_, W> {
            type Output = io::Result<()>;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut **self.project().writer).$function(cx)
            }
        }
    };
}

plain_future! {
    /// The future of [`flush`](crate::io::AsyncWriteExt::flush).
    Flush = poll_flush
}
plain_future! {
    /// The future of [`shutdown`](crate::io::AsyncWriteExt::shutdown).
    Shutdown = poll_shutdown
}

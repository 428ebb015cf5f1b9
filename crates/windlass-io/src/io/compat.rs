//! Adapters between our traits and those of `futures-io`.
//!
//! Sockets, files and pipes of this crate have both kinds of traits. What comes from elsewhere has
//! one kind: these types give it the other.
//!
//! ```
//! use windlass_io::io::compat::{FromFutures, IntoFutures};
//! use windlass_io::io::{self, AsyncReadExt, AsyncWriteExt};
//!
//! # windlass_runtime::Runtime::new()?.block_on(async {
//! let (one, mut other) = io::duplex(64);
//! // A library that asks for the traits of `futures-io` takes this ...
//! let stream = IntoFutures::new(one);
//! // ... and what such a library returns is read and written here after that.
//! let mut stream = FromFutures::new(stream);
//! stream.write_all(b"there and back").await?;
//! stream.shutdown().await?;
//! let mut text = String::new();
//! other.read_to_string(&mut text).await?;
//! assert_eq!(text, "there and back");
//! # std::io::Result::Ok(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::forward::{forward_buf_read, forward_write};
use super::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

pin_project! {
    /// A stream with our traits, made of one that has those of `futures-io`.
    #[derive(Debug)]
    pub struct FromFutures<T> {
        #[pin]
        inner: T,
        // The position that was asked for, until it is reached.
        seek: Option<SeekFrom>,
    }
}

pin_project! {
    /// A stream with the traits of `futures-io`, made of one that has ours.
    #[derive(Debug)]
    pub struct IntoFutures<T> {
        #[pin]
        inner: T,
        // The position that the stream inside was told.
        seek: Option<SeekFrom>,
    }
}

/// What both adapters have.
macro_rules! around {
    ($adapter:ident) => {
        impl<T> $adapter<T> {
            /// Wraps a stream.
            pub fn new(inner: T) -> $adapter<T> {
                $adapter { inner, seek: None }
            }

            /// Returns the stream inside.
            pub fn get_ref(&self) -> &T {
                &self.inner
            }

            /// Returns the stream inside, to be changed.
            pub fn get_mut(&mut self) -> &mut T {
                &mut self.inner
            }

            /// Takes the stream out.
            pub fn into_inner(self) -> T {
                self.inner
            }
        }
    };
}

around!(FromFutures);
around!(IntoFutures);

impl<T: futures_io::AsyncRead> AsyncRead for FromFutures<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Such a reader takes memory with values only. Each byte is set to 0 once per buffer.
        let room = buf.initialize_unfilled();
        let count = ready!(self.project().inner.poll_read(cx, room))?;
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<T: futures_io::AsyncBufRead> AsyncBufRead for FromFutures<T> {
    forward_buf_read!(inner);
}

impl<T: futures_io::AsyncWrite> AsyncWrite for FromFutures<T> {
    forward_write!(inner);

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_close(cx)
    }
}

/// Without a move under way, `poll_complete` asks the stream inside for its position.
impl<T: futures_io::AsyncSeek> AsyncSeek for FromFutures<T> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        *self.project().seek = Some(position);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let this = self.project();
        let position = this.seek.unwrap_or(SeekFrom::Current(0));
        let moved = ready!(this.inner.poll_seek(cx, position));
        *this.seek = None;
        Poll::Ready(moved)
    }
}

impl<T: AsyncRead> futures_io::AsyncRead for IntoFutures<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        ready!(self.project().inner.poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

impl<T: AsyncBufRead> futures_io::AsyncBufRead for IntoFutures<T> {
    forward_buf_read!(inner);
}

impl<T: AsyncWrite> futures_io::AsyncWrite for IntoFutures<T> {
    forward_write!(inner);

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }
}

impl<T: AsyncSeek> futures_io::AsyncSeek for IntoFutures<T> {
    fn poll_seek(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        position: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        let mut this = self.project();
        if *this.seek != Some(position) {
            // An earlier move, to another position, ends first.
            ready!(this.inner.as_mut().poll_complete(cx))?;
            this.inner.as_mut().start_seek(position)?;
            *this.seek = Some(position);
        }
        let moved = ready!(this.inner.poll_complete(cx));
        *this.seek = None;
        Poll::Ready(moved)
    }
}

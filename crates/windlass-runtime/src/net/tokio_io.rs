//! tokio's `AsyncRead` and `AsyncWrite` for every stream and half, by way of those of `futures-io`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use super::stream::AsStream;
use super::{TcpStream, UnixStream};

macro_rules! tokio_read {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                // Sets the unused part to 0 once per buffer, not once per read.
                let room = buffer.initialize_unfilled();
                let count = ready!(self.as_stream().poll_read(cx, room))?;
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
        }
    };
}

macro_rules! tokio_write {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.as_stream().poll_write(cx, bytes)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.as_stream().poll_write_vectored(cx, buffers)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                futures_io::AsyncWrite::poll_flush(self, cx)
            }

            fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                futures_io::AsyncWrite::poll_close(self, cx)
            }
        }
    };
}

tokio_read!([] TcpStream);
tokio_write!([] TcpStream);
tokio_read!([] UnixStream);
tokio_write!([] UnixStream);
tokio_read!([S: AsStream] ReadHalf<'_, S>);
tokio_write!([S: AsStream] WriteHalf<'_, S>);
tokio_read!([S: AsStream] OwnedReadHalf<S>);
tokio_write!([S: AsStream] OwnedWriteHalf<S>);

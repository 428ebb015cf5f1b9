//! tokio's `AsyncRead` and `AsyncWrite` for all that has those of `futures-io`, by way of these.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::command::{ChildStderr, ChildStdin, ChildStdout};
use crate::fs::File;
use crate::net::{
    AsStream, OwnedReadHalf, OwnedWriteHalf, ReadHalf, TcpStream, UnixStream, WriteHalf,
};

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
                let count = ready!(futures_io::AsyncRead::poll_read(self, cx, room))?;
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
        }
    };
}

macro_rules! tokio_write {
    ([$($generics:tt)*] $type:ty, vectored: $vectored:literal) => {
        impl<$($generics)*> AsyncWrite for $type {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncWrite::poll_write(self, cx, bytes)
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncWrite::poll_write_vectored(self, cx, buffers)
            }

            fn is_write_vectored(&self) -> bool {
                $vectored
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
tokio_write!([] TcpStream, vectored: true);
tokio_read!([] UnixStream);
tokio_write!([] UnixStream, vectored: true);
tokio_read!([S: AsStream] ReadHalf<'_, S>);
tokio_write!([S: AsStream] WriteHalf<'_, S>, vectored: true);
tokio_read!([S: AsStream] OwnedReadHalf<S>);
tokio_write!([S: AsStream] OwnedWriteHalf<S>, vectored: true);
tokio_read!([] File);
tokio_write!([] File, vectored: false);
tokio_read!([] ChildStdout);
tokio_read!([] ChildStderr);
tokio_write!([] ChildStdin, vectored: true);

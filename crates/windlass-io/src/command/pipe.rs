//! The ends of a command's pipes.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use mio::unix::pipe;
use windlass_core::sync::Arc;

use crate::io::{AsyncRead, AsyncWrite, ReadBuf};
use crate::os;
use windlass_runtime::driver::{Direction, IoDriver, Registered};

/// The writing end of a command's input. Dropped or closed, the input ends.
#[derive(Debug)]
pub struct ChildStdin(Option<Registered<pipe::Sender>>);

/// The reading end of a command's output.
#[derive(Debug)]
pub struct ChildStdout(Pipe);

/// The reading end of a command's complaints.
#[derive(Debug)]
pub struct ChildStderr(Pipe);

/// A reading end.
#[derive(Debug)]
struct Pipe(Registered<pipe::Receiver>);

impl Pipe {
    fn new(driver: &Arc<IoDriver>, pipe: pipe::Receiver) -> io::Result<Pipe> {
        pipe.set_nonblocking(true)?;
        Registered::new(driver, pipe).map(Pipe)
    }

    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut pipe = self.0.socket();
        self.0
            .source()
            .poll_io(Direction::Read, cx, || pipe.read(buffer))
    }

    /// Reads into memory that need not hold values.
    fn poll_read_into(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = || os::read_into(self.0.socket(), buffer);
        let read = self.0.source().poll_io(Direction::Read, cx, read);
        read.map_ok(drop)
    }

    fn poll_read_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut pipe = self.0.socket();
        self.0
            .source()
            .poll_io(Direction::Read, cx, || pipe.read_vectored(buffers))
    }
}

/// What all ends have that have a descriptor.
macro_rules! pipe_end {
    ($type:ident) => {
        impl AsRawFd for $type {
            fn as_raw_fd(&self) -> RawFd {
                self.as_fd().as_raw_fd()
            }
        }

        /// The pipe of one command as that of another.
        impl TryInto<Stdio> for $type {
            type Error = io::Error;

            fn try_into(self) -> io::Result<Stdio> {
                self.into_owned_fd().map(Stdio::from)
            }
        }

        // A pipe holds no value of the program that a panic could leave half changed.
        impl UnwindSafe for $type {}
        impl RefUnwindSafe for $type {}
    };
}

/// The reading ends.
macro_rules! reading_end {
    ($type:ident, $std:ty) => {
        impl $type {
            pub(super) fn new(driver: &Arc<IoDriver>, pipe: $std) -> io::Result<$type> {
                Pipe::new(driver, pipe.into()).map($type)
            }
        }

        impl $type {
            /// Takes over a pipe of the standard library.
            ///
            /// # Errors
            /// `Unsupported` in a simulation; otherwise what the operating system says.
            pub fn from_std(inner: $std) -> io::Result<$type> {
                let pipe = pipe::Receiver::from(inner);
                pipe.set_nonblocking(true)?;
                Registered::here(pipe).map(Pipe).map($type)
            }

            /// Gives the descriptor out, in blocking mode, as other commands expect it.
            pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
                let pipe = self.0.0.into_socket();
                pipe.set_nonblocking(false)?;
                Ok(pipe.into())
            }
        }

        impl AsFd for $type {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.0.socket().as_fd()
            }
        }

        pipe_end!($type);

        impl AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.0.poll_read_into(cx, buf)
            }
        }

        impl futures_io::AsyncRead for $type {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffer: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_read(cx, buffer)
            }

            fn poll_read_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buffers: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                self.0.poll_read_vectored(cx, buffers)
            }
        }
    };
}

reading_end!(ChildStdout, std::process::ChildStdout);
reading_end!(ChildStderr, std::process::ChildStderr);

impl ChildStdin {
    pub(super) fn new(
        driver: &Arc<IoDriver>,
        pipe: std::process::ChildStdin,
    ) -> io::Result<ChildStdin> {
        let pipe = pipe::Sender::from(pipe);
        pipe.set_nonblocking(true)?;
        Registered::new(driver, pipe).map(|pipe| ChildStdin(Some(pipe)))
    }

    /// Takes over a pipe of the standard library.
    ///
    /// # Errors
    /// `Unsupported` in a simulation; otherwise what the operating system says.
    pub fn from_std(inner: std::process::ChildStdin) -> io::Result<ChildStdin> {
        let pipe = pipe::Sender::from(inner);
        pipe.set_nonblocking(true)?;
        Registered::here(pipe).map(|pipe| ChildStdin(Some(pipe)))
    }

    /// Gives the descriptor out, in blocking mode, as other commands expect it.
    ///
    /// # Errors
    /// `BrokenPipe` if the pipe was shut down; otherwise what the operating system says.
    pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
        let pipe = self.0.ok_or(io::ErrorKind::BrokenPipe)?.into_socket();
        pipe.set_nonblocking(false)?;
        Ok(pipe.into())
    }

    fn poll_write_some(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |mut pipe| pipe.write(bytes))
    }

    fn poll_with(
        &self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&pipe::Sender) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        match &self.0 {
            Some(pipe) => pipe
                .source()
                .poll_io(Direction::Write, cx, || write(pipe.socket())),
            // Closed by ourselves.
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl AsFd for ChildStdin {
    /// # Panics
    /// If the pipe was shut down.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Some(pipe) => pipe.socket().as_fd(),
            None => panic!("a pipe that was shut down has no descriptor"),
        }
    }
}

pipe_end!(ChildStdin);

impl AsyncWrite for ChildStdin {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_some(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |mut pipe| pipe.write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

impl futures_io::AsyncWrite for ChildStdin {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_some(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |mut pipe| pipe.write_vectored(buffers))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

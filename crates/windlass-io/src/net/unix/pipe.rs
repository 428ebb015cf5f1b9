//! Pipes within the system: anonymous ones, and those with a path (FIFOs).
//!
//! A simulation has none: each function fails with `Unsupported` there.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use mio::unix::pipe as mio_pipe;
use windlass_runtime::driver::{Direction, Registered};

use crate::io::read_buf::fill_chunk;
use crate::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, ready};
use crate::net::readiness::{descriptor, poll_ready, ready_method};
use crate::net::stream;
use crate::os;

/// Makes a pipe: what is written to the sender is read from the receiver.
///
/// ```
/// use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
/// use windlass_io::net::unix::pipe;
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let (mut sender, mut receiver) = pipe::pipe()?;
/// sender.write_all(b"hello").await?;
/// drop(sender);
/// let mut text = String::new();
/// receiver.read_to_string(&mut text).await?;
/// assert_eq!(text, "hello");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (sender, receiver) = mio_pipe::new()?;
    Ok((
        Sender(Registered::here(sender)?),
        Receiver(Registered::here(receiver)?),
    ))
}

/// How to open a pipe that has a path.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    /// Begins with the usual: one direction, and the file is checked to be a pipe.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Opens the pipe for both directions, so that it has a reader and a writer as long as this end
    /// is open.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn read_write(&mut self, value: bool) -> &mut Self {
        self.read_write = value;
        self
    }

    /// Does not check that the file is a pipe.
    pub fn unchecked(&mut self, value: bool) -> &mut Self {
        self.unchecked = value;
        self
    }

    /// Opens the reading end of the pipe at `path`.
    ///
    /// # Errors
    /// `InvalidInput` if the file is no pipe, and what the operating system says.
    pub fn open_receiver<P: AsRef<Path>>(&self, path: P) -> io::Result<Receiver> {
        Receiver::from_file_unchecked(self.open(path.as_ref(), true)?)
    }

    /// Opens the writing end of the pipe at `path`.
    ///
    /// # Errors
    /// `ENXIO` if no reader has opened the pipe; `InvalidInput` if the file is no pipe.
    pub fn open_sender<P: AsRef<Path>>(&self, path: P) -> io::Result<Sender> {
        Sender::from_file_unchecked(self.open(path.as_ref(), false)?)
    }

    fn open(&self, path: &Path, reads: bool) -> io::Result<File> {
        let file = std::fs::OpenOptions::new()
            .read(reads || self.read_write)
            .write(!reads || self.read_write)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)?;
        if !self.unchecked && !is_pipe(&file)? {
            return Err(not_a_pipe());
        }
        Ok(file)
    }
}

fn is_pipe(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_type().is_fifo())
}

fn not_a_pipe() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a pipe")
}

/// The writing end of a pipe. Dropped, it ends what the reader reads.
#[derive(Debug)]
pub struct Sender(Registered<mio_pipe::Sender>);

/// The reading end of a pipe. After its drop, writes fail with `BrokenPipe`.
#[derive(Debug)]
pub struct Receiver(Registered<mio_pipe::Receiver>);

/// What both ends have.
macro_rules! pipe_end {
    ($end:ident, $mio:ty, $other_mode:expr, $refusal:literal, $interest:ident) => {
        impl $end {
            /// Takes over a file, which is checked and put into non-blocking mode.
            ///
            /// # Errors
            /// `InvalidInput` if the file is no pipe or was opened for the other direction only.
            pub fn from_file(file: File) -> io::Result<$end> {
                if !is_pipe(&file)? {
                    return Err(not_a_pipe());
                }
                if os::access_mode(&file)? == $other_mode {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, $refusal));
                }
                let pipe = <$mio>::from(OwnedFd::from(file));
                pipe.set_nonblocking(true)?;
                Registered::here(pipe).map($end)
            }

            /// Takes over a descriptor as [`from_file`](Self::from_file) does a file.
            ///
            /// # Errors
            /// As `from_file`.
            pub fn from_owned_fd(owned_fd: OwnedFd) -> io::Result<$end> {
                $end::from_file(owned_fd.into())
            }

            /// Takes over a file that is known to be a pipe in non-blocking mode.
            ///
            /// # Errors
            /// What the operating system says.
            pub fn from_file_unchecked(file: File) -> io::Result<$end> {
                $end::from_owned_fd_unchecked(file.into())
            }

            /// Takes over a descriptor that is known to be a pipe in non-blocking mode.
            ///
            /// # Errors
            /// What the operating system says.
            pub fn from_owned_fd_unchecked(owned_fd: OwnedFd) -> io::Result<$end> {
                Registered::here(<$mio>::from(owned_fd)).map($end)
            }

            /// Takes the descriptor out of the runtime and puts it into blocking mode.
            ///
            /// # Errors
            /// What the operating system says.
            pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
                let pipe = self.0.into_socket();
                pipe.set_nonblocking(false)?;
                Ok(pipe.into())
            }

            /// Takes the descriptor out of the runtime; it stays in non-blocking mode.
            ///
            /// # Errors
            /// None today.
            pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
                Ok(self.0.into_socket().into())
            }

            /// Calls `f`, which does something with the pipe that does not block, if that may be
            /// ready. `WouldBlock` from `f` proves that it is not.
            ///
            /// # Errors
            /// `WouldBlock` if the pipe is not ready; otherwise what `f` returns.
            pub fn try_io<R>(&self, f: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
                ready::try_io(self.0.source(), Interest::$interest, f)
            }

            ready_method!(|this| this.0.source());
        }

        descriptor!($end, |this| Some(this.0.socket()));
    };
}

pipe_end!(
    Sender,
    mio_pipe::Sender,
    libc::O_RDONLY,
    "not in O_WRONLY or O_RDWR access mode",
    WRITABLE
);
pipe_end!(
    Receiver,
    mio_pipe::Receiver,
    libc::O_WRONLY,
    "not in O_RDONLY or O_RDWR access mode",
    READABLE
);

impl Sender {
    /// Waits until there is room to write, or an error. It may be a false alarm. Cancel-safe.
    pub async fn writable(&self) -> io::Result<()> {
        stream::ready(self.0.source(), Direction::Write).await
    }

    /// Polls until there may be room to write: the last task that polled is woken.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_ready(self.0.source(), Direction::Write, cx)
    }

    /// Writes what there is room for now; otherwise fails with `WouldBlock`.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        let write = || self.0.socket().write(buf);
        self.0.source().try_io(Direction::Write, write)
    }

    /// Writes as `try_write` does, from several buffers, one after the other.
    pub fn try_write_vectored(&self, buf: &[IoSlice<'_>]) -> io::Result<usize> {
        let write = || self.0.socket().write_vectored(buf);
        self.0.source().try_io(Direction::Write, write)
    }
}

impl Receiver {
    /// Waits until there is something to read, or the end. It may be a false alarm. Cancel-safe.
    pub async fn readable(&self) -> io::Result<()> {
        stream::ready(self.0.source(), Direction::Read).await
    }

    /// Polls until there may be something to read: the last task that polled is woken.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_ready(self.0.source(), Direction::Read, cx)
    }

    /// Reads what is there now; otherwise fails with `WouldBlock`.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let read = || self.0.socket().read(buf);
        self.0.source().try_io(Direction::Read, read)
    }

    /// Reads as `try_read` does, into several buffers, one after the other.
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let read = || self.0.socket().read_vectored(bufs);
        self.0.source().try_io(Direction::Read, read)
    }

    /// Reads as `try_read` does, and appends to `buf` (a `BytesMut`, a `Vec<u8>`).
    pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        let read = || fill_chunk(buf, |chunk| os::read_into(self.0.socket(), chunk)).1;
        self.0.source().try_io(Direction::Read, read)
    }
}

impl AsyncRead for Receiver {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = || os::read_into(self.0.socket(), buf);
        let read = self.0.source().poll_io(Direction::Read, cx, read);
        read.map_ok(drop)
    }
}

impl AsyncWrite for Sender {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let write = || self.0.socket().write(buf);
        self.0.source().poll_io(Direction::Write, cx, write)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let write = || self.0.socket().write_vectored(bufs);
        self.0.source().poll_io(Direction::Write, cx, write)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing: drop the sender to end what the receiver reads.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

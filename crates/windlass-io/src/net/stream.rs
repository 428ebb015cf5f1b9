//! Bytes both ways, whatever the socket: what TCP and Unix streams and their halves have in common.
//!
//! A short transfer on a TCP socket clears its readiness (why no wake-up is lost:
//! `driver::source`). Not so a short *read* on a Unix socket: the kernel ends a read after a
//! message that carries descriptors or another sender's credentials, with more bytes behind it.
//! (TCP has something alike, the urgent mark: a peer that sends urgent data may have what follows
//! it delivered late. No other socket is affected, and the mark has been obsolete for long.)

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::Shutdown;
use std::task::{Context, Poll};

use socket2::SockRef;

use super::simulated;
use windlass_runtime::driver::{Direction, Registered, Source, shut_down};

/// A connected stream socket.
#[derive(Debug)]
pub struct Stream(pub(super) Kind);

/// The kind of socket.
#[derive(Debug)]
pub(super) enum Kind {
    Tcp(Registered<mio::net::TcpStream>),
    Unix(Registered<mio::net::UnixStream>),
    Simulated(simulated::Stream),
}

/// Whose options and addresses are asked for.
pub(super) enum System<'a> {
    Real(SockRef<'a>),
    Simulated(&'a simulated::Stream),
}

/// What has a stream in it: the streams that users see.
pub trait AsStream {
    fn as_stream(&self) -> &Stream;
}

/// The kernel moves no more than this at once, and no more slices: what is longer is cut short
/// though there is more.
const MOST_BYTES: usize = 0x7fff_f000;
const MOST_SLICES: usize = 1024;

/// Tries an operation on whichever socket it is.
macro_rules! on_socket {
    ($stream:expr, $socket:ident => $real:expr, $simulated:ident => $other:expr) => {
        match &$stream.0 {
            Kind::Tcp(registered) => {
                let mut $socket = registered.socket();
                $real
            }
            Kind::Unix(registered) => {
                let mut $socket = registered.socket();
                $real
            }
            Kind::Simulated($simulated) => $other,
        }
    };
}

impl Stream {
    pub(super) fn source(&self) -> &Source {
        match &self.0 {
            Kind::Tcp(registered) => registered.source(),
            Kind::Unix(registered) => registered.source(),
            Kind::Simulated(stream) => stream.source(),
        }
    }

    pub(super) fn system(&self) -> System<'_> {
        match &self.0 {
            Kind::Tcp(registered) => System::Real(SockRef::from(registered.socket())),
            Kind::Unix(registered) => System::Real(SockRef::from(registered.socket())),
            Kind::Simulated(stream) => System::Simulated(stream),
        }
    }

    /// Fewer bytes than this, and the socket has no more for now; 0: that cannot be said.
    fn shows_the_end(&self, direction: Direction, asked: usize) -> usize {
        let tells = match &self.0 {
            Kind::Tcp(_) => true,
            Kind::Unix(_) => direction == Direction::Write,
            Kind::Simulated(_) => false,
        };
        // Of what is not edge-triggered epoll nothing is assumed.
        let edges = cfg!(any(target_os = "linux", target_os = "android"));
        if tells && edges {
            asked.min(MOST_BYTES)
        } else {
            0
        }
    }

    fn shows_the_end_of_slices(
        &self,
        direction: Direction,
        lengths: impl ExactSizeIterator<Item = usize>,
    ) -> usize {
        match lengths.len() {
            0..=MOST_SLICES => self.shows_the_end(direction, lengths.sum()),
            _ => 0,
        }
    }

    fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        on_socket!(self,
            socket => socket.read(buffer),
            simulated => simulated.read_vectored(&mut [IoSliceMut::new(buffer)]))
    }

    fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        on_socket!(self,
            socket => socket.write(bytes),
            simulated => simulated.write_vectored(&[IoSlice::new(bytes)]))
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let asked = self.shows_the_end(Direction::Read, buffer.len());
        self.source()
            .poll_transfer(Direction::Read, cx, asked, || self.read_now(buffer))
    }

    pub(super) fn poll_read_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let lengths = buffers.iter().map(|buffer| buffer.len());
        let asked = self.shows_the_end_of_slices(Direction::Read, lengths);
        self.source().poll_transfer(Direction::Read, cx, asked, || {
            on_socket!(self,
                    socket => socket.read_vectored(buffers),
                    simulated => simulated.read_vectored(buffers))
        })
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let asked = self.shows_the_end(Direction::Write, bytes.len());
        self.source()
            .poll_transfer(Direction::Write, cx, asked, || self.write_now(bytes))
    }

    pub(super) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let lengths = buffers.iter().map(|buffer| buffer.len());
        let asked = self.shows_the_end_of_slices(Direction::Write, lengths);
        self.source()
            .poll_transfer(Direction::Write, cx, asked, || {
                on_socket!(self,
                    socket => socket.write_vectored(buffers),
                    simulated => simulated.write_vectored(buffers))
            })
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source()
            .try_io(Direction::Read, || self.read_now(buffer))
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.source()
            .try_io(Direction::Write, || self.write_now(bytes))
    }

    /// Waits until something can be done in this direction, or has failed.
    pub(super) async fn ready(&self, direction: Direction) -> io::Result<()> {
        ready(self.source(), direction).await
    }

    /// Ends one direction or both. A connection that is gone has none to end.
    pub(super) fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self.system() {
            System::Real(socket) => match socket.shutdown(how) {
                Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                result => result,
            },
            System::Simulated(stream) => {
                stream.shutdown(how);
                Ok(())
            }
        }
    }
}

/// Waits until a socket may be ready.
pub(super) async fn ready(source: &Source, direction: Direction) -> io::Result<()> {
    match source.ready(direction).await {
        found if found.is_shut() => Err(shut_down()),
        _ => Ok(()),
    }
}

/// A vector that grows while it is read into; holds what was read, and nothing else, once this is
/// dropped.
pub(super) struct Filling<'a> {
    buffer: &'a mut Vec<u8>,
    filled: usize,
}

impl<'a> Filling<'a> {
    /// Room that a read is offered at least.
    const LEAST_ROOM: usize = 32;

    pub(super) fn new(buffer: &'a mut Vec<u8>) -> Filling<'a> {
        let filled = buffer.len();
        Filling { buffer, filled }
    }

    /// Where the next bytes go.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.buffer.len() - self.filled < Self::LEAST_ROOM {
            // Doubles, as every vector; each byte is set to 0 once, not once per read.
            self.buffer.reserve(Self::LEAST_ROOM);
            self.buffer.resize(self.buffer.capacity(), 0);
        }
        &mut self.buffer[self.filled..]
    }

    pub(super) fn advance(&mut self, count: usize) {
        self.filled += count;
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        self.buffer.truncate(self.filled);
    }
}

/// The methods of everything that reads: streams and reading halves. They are `AsStream`.
macro_rules! reading_methods {
    () => {
        /// Reads what is there, at least a byte; 0 at the end. Cancel-safe.
        pub async fn read(&mut self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
            ::std::future::poll_fn(|cx| self.as_stream().poll_read(cx, buffer)).await
        }

        /// Reads as `read` does, into several buffers, one after the other. Cancel-safe.
        pub async fn read_vectored(
            &mut self,
            buffers: &mut [::std::io::IoSliceMut<'_>],
        ) -> ::std::io::Result<usize> {
            ::std::future::poll_fn(|cx| self.as_stream().poll_read_vectored(cx, buffers)).await
        }

        /// Fills the buffer. Not cancel-safe: what was read before the drop is lost with the wait.
        ///
        /// # Errors
        /// `UnexpectedEof` if the end comes first.
        pub async fn read_exact(&mut self, mut buffer: &mut [u8]) -> ::std::io::Result<()> {
            while !buffer.is_empty() {
                let read = self.read(buffer).await?;
                if read == 0 {
                    return Err(::std::io::ErrorKind::UnexpectedEof.into());
                }
                buffer = &mut buffer[read..];
            }
            Ok(())
        }

        /// Appends everything up to the end, however much that is, and says how much it was.
        /// Cancel-safe: what was read is in the vector, after an error too.
        pub async fn read_to_end(&mut self, buffer: &mut Vec<u8>) -> ::std::io::Result<usize> {
            let mut filling = $crate::net::stream::Filling::new(buffer);
            let mut total = 0;
            loop {
                match self.read(filling.room()).await? {
                    0 => return Ok(total),
                    count => {
                        filling.advance(count);
                        total += count;
                    }
                }
            }
        }

        /// Reads what is there now.
        ///
        /// # Errors
        /// `WouldBlock` if nothing is: wait for `readable`.
        pub fn try_read(&self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
            self.as_stream().try_read(buffer)
        }

        /// Waits until there is something to read, or the end, or an error. It may be a false
        /// alarm: follow it with `try_read`. Cancel-safe.
        pub async fn readable(&self) -> ::std::io::Result<()> {
            self.as_stream()
                .ready(windlass_runtime::driver::Direction::Read)
                .await
        }
    };
}

/// The methods of everything that writes: streams and writing halves. They are `AsStream`.
macro_rules! writing_methods {
    () => {
        /// Writes some of `bytes`. Cancel-safe.
        pub async fn write(&mut self, bytes: &[u8]) -> ::std::io::Result<usize> {
            ::std::future::poll_fn(|cx| self.as_stream().poll_write(cx, bytes)).await
        }

        /// Writes as `write` does, from several buffers, one after the other. Cancel-safe.
        pub async fn write_vectored(
            &mut self,
            buffers: &[::std::io::IoSlice<'_>],
        ) -> ::std::io::Result<usize> {
            ::std::future::poll_fn(|cx| self.as_stream().poll_write_vectored(cx, buffers)).await
        }

        /// Writes all of `bytes`. Not cancel-safe: how much was written before the drop is not
        /// known.
        pub async fn write_all(&mut self, mut bytes: &[u8]) -> ::std::io::Result<()> {
            while !bytes.is_empty() {
                let written = self.write(bytes).await?;
                if written == 0 {
                    return Err(::std::io::ErrorKind::WriteZero.into());
                }
                bytes = &bytes[written..];
            }
            Ok(())
        }

        /// Writes what there is room for now.
        ///
        /// # Errors
        /// `WouldBlock` if there is none: wait for `writable`.
        pub fn try_write(&self, bytes: &[u8]) -> ::std::io::Result<usize> {
            self.as_stream().try_write(bytes)
        }

        /// Waits until there is room to write, or an error. It may be a false alarm: follow it with
        /// `try_write`. Cancel-safe.
        pub async fn writable(&self) -> ::std::io::Result<()> {
            self.as_stream()
                .ready(windlass_runtime::driver::Direction::Write)
                .await
        }

        /// Says that nothing more will be written; the other side reads to the end.
        pub fn shutdown_write(&mut self) -> ::std::io::Result<()> {
            self.as_stream().shutdown(::std::net::Shutdown::Write)
        }
    };
}

/// The `AsyncRead` of `futures-io`, for what is `AsStream`.
macro_rules! futures_read {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> ::futures_io::AsyncRead for $type {
            fn poll_read(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buffer: &mut [u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                self.as_stream().poll_read(cx, buffer)
            }

            fn poll_read_vectored(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buffers: &mut [::std::io::IoSliceMut<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                self.as_stream().poll_read_vectored(cx, buffers)
            }
        }
    };
}

/// The `AsyncWrite` of `futures-io`, for what is `AsStream`. Closing ends the writing direction.
macro_rules! futures_write {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> ::futures_io::AsyncWrite for $type {
            fn poll_write(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                bytes: &[u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                self.as_stream().poll_write(cx, bytes)
            }

            fn poll_write_vectored(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buffers: &[::std::io::IoSlice<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                self.as_stream().poll_write_vectored(cx, buffers)
            }

            fn poll_flush(
                self: ::std::pin::Pin<&mut Self>,
                _: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                ::std::task::Poll::Ready(Ok(()))
            }

            fn poll_close(
                self: ::std::pin::Pin<&mut Self>,
                _: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                ::std::task::Poll::Ready(self.as_stream().shutdown(::std::net::Shutdown::Write))
            }
        }
    };
}

pub(super) use {futures_read, futures_write, reading_methods, writing_methods};

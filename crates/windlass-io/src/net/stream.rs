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
use crate::io::ReadBuf;
use crate::io::read_buf::fill_chunk;
use crate::os;
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

    fn read_vectored_now(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        on_socket!(self,
            socket => socket.read_vectored(buffers),
            simulated => simulated.read_vectored(buffers))
    }

    fn write_vectored_now(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        on_socket!(self,
            socket => socket.write_vectored(buffers),
            simulated => simulated.write_vectored(buffers))
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

    /// Reads into memory that need not hold values.
    pub(super) fn poll_read_into(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let asked = self.shows_the_end(Direction::Read, buffer.remaining());
        let source = self.source();
        let read = source.poll_transfer(Direction::Read, cx, asked, || self.read_into_now(buffer));
        read.map_ok(drop)
    }

    fn read_into_now(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        match &self.0 {
            Kind::Tcp(registered) => os::read_into(registered.socket(), buffer),
            Kind::Unix(registered) => os::read_into(registered.socket(), buffer),
            Kind::Simulated(stream) => {
                let room = IoSliceMut::new(buffer.initialize_unfilled());
                let count = stream.read_vectored(&mut [room])?;
                buffer.advance(count);
                Ok(count)
            }
        }
    }

    pub(super) fn poll_read_vectored(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let lengths = buffers.iter().map(|buffer| buffer.len());
        let asked = self.shows_the_end_of_slices(Direction::Read, lengths);
        self.source().poll_transfer(Direction::Read, cx, asked, || {
            self.read_vectored_now(buffers)
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
                self.write_vectored_now(buffers)
            })
    }

    pub(super) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source()
            .try_io(Direction::Read, || self.read_now(buffer))
    }

    pub(super) fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.source()
            .try_io(Direction::Read, || self.read_vectored_now(buffers))
    }

    pub(super) fn try_read_buf<B: bytes::BufMut>(&self, buffer: &mut B) -> io::Result<usize> {
        self.source().try_io(Direction::Read, || {
            fill_chunk(buffer, |chunk| self.read_into_now(chunk)).1
        })
    }

    pub(super) fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.source()
            .try_io(Direction::Write, || self.write_vectored_now(buffers))
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

/// The methods of everything that reads: streams and reading halves. They are `AsStream`.
macro_rules! reading_methods {
    () => {
        /// Reads what is there now.
        ///
        /// # Errors
        /// `WouldBlock` if nothing is: wait for `readable`.
        pub fn try_read(&self, buffer: &mut [u8]) -> ::std::io::Result<usize> {
            self.as_stream().try_read(buffer)
        }

        /// Reads as `try_read` does, into several buffers, one after the other.
        pub fn try_read_vectored(
            &self,
            bufs: &mut [::std::io::IoSliceMut<'_>],
        ) -> ::std::io::Result<usize> {
            self.as_stream().try_read_vectored(bufs)
        }

        /// Reads as `try_read` does, and appends to `buf` (a `BytesMut`, a `Vec<u8>`).
        pub fn try_read_buf<B: ::bytes::BufMut>(&self, buf: &mut B) -> ::std::io::Result<usize> {
            self.as_stream().try_read_buf(buf)
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
        /// Writes what there is room for now.
        ///
        /// # Errors
        /// `WouldBlock` if there is none: wait for `writable`.
        pub fn try_write(&self, bytes: &[u8]) -> ::std::io::Result<usize> {
            self.as_stream().try_write(bytes)
        }

        /// Writes as `try_write` does, from several buffers, one after the other.
        pub fn try_write_vectored(
            &self,
            bufs: &[::std::io::IoSlice<'_>],
        ) -> ::std::io::Result<usize> {
            self.as_stream().try_write_vectored(bufs)
        }

        /// Waits until there is room to write, or an error. It may be a false alarm: follow it with
        /// `try_write`. Cancel-safe.
        pub async fn writable(&self) -> ::std::io::Result<()> {
            self.as_stream()
                .ready(windlass_runtime::driver::Direction::Write)
                .await
        }
    };
}

/// Our `AsyncRead`, for what is `AsStream`.
macro_rules! async_read {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $crate::io::AsyncRead for $type {
            fn poll_read(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buf: &mut $crate::io::ReadBuf<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                self.as_stream().poll_read_into(cx, buf)
            }
        }
    };
}

/// Our `AsyncWrite`, for what is `AsStream`. A shutdown ends the writing direction.
macro_rules! async_write {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $crate::io::AsyncWrite for $type {
            fn poll_write(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                buf: &[u8],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                self.as_stream().poll_write(cx, buf)
            }

            fn poll_write_vectored(
                self: ::std::pin::Pin<&mut Self>,
                cx: &mut ::std::task::Context<'_>,
                bufs: &[::std::io::IoSlice<'_>],
            ) -> ::std::task::Poll<::std::io::Result<usize>> {
                self.as_stream().poll_write_vectored(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(
                self: ::std::pin::Pin<&mut Self>,
                _: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                ::std::task::Poll::Ready(Ok(()))
            }

            fn poll_shutdown(
                self: ::std::pin::Pin<&mut Self>,
                _: &mut ::std::task::Context<'_>,
            ) -> ::std::task::Poll<::std::io::Result<()>> {
                ::std::task::Poll::Ready(self.as_stream().shutdown(::std::net::Shutdown::Write))
            }
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

/// The traits of a whole stream `$Stream(Stream)`.
macro_rules! stream_traits {
    ($Stream:ident) => {
        impl AsRef<$Stream> for $Stream {
            fn as_ref(&self) -> &$Stream {
                self
            }
        }

        impl $crate::net::stream::AsStream for $Stream {
            fn as_stream(&self) -> &$crate::net::stream::Stream {
                &self.0
            }
        }

        impl $crate::net::stream::AsStream for &$Stream {
            fn as_stream(&self) -> &$crate::net::stream::Stream {
                &self.0
            }
        }

        $crate::net::stream::async_read!([] $Stream);
        $crate::net::stream::async_write!([] $Stream);
        $crate::net::stream::futures_read!([] $Stream);
        $crate::net::stream::futures_write!([] $Stream);
        $crate::net::stream::futures_read!([] & $Stream);
        $crate::net::stream::futures_write!([] & $Stream);
    };
}

pub(super) use {
    async_read, async_write, futures_read, futures_write, reading_methods, stream_traits,
    writing_methods,
};

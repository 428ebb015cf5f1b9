//! What UDP and Unix datagram sockets have in common.

use std::io;

use super::simulated::Datagrams;
use windlass_runtime::driver::{Registered, Source, unsupported};

const NOT_REAL: &str =
    "a simulated socket is none of the operating system's: this works outside of simulations only";

/// A datagram socket of the kernel or of a simulation.
#[derive(Debug)]
pub(super) enum Socket<S: mio::event::Source> {
    Real(Registered<S>),
    Simulated(Datagrams),
}

impl<S: mio::event::Source> Socket<S> {
    pub(super) fn source(&self) -> &Source {
        match self {
            Socket::Real(socket) => socket.source(),
            Socket::Simulated(socket) => socket.source(),
        }
    }

    /// Takes the socket of the kernel out of the driver.
    pub(super) fn into_real(self) -> io::Result<S> {
        match self {
            Socket::Real(socket) => Ok(socket.into_socket()),
            Socket::Simulated(_) => Err(unsupported(NOT_REAL)),
        }
    }

    /// Returns the socket of the kernel.
    pub(super) fn real(&self) -> io::Result<&S> {
        match self {
            Socket::Real(socket) => Ok(socket.socket()),
            Socket::Simulated(_) => Err(unsupported(NOT_REAL)),
        }
    }
}

/// The methods of a datagram socket whose addresses are `$address`, around a [`Socket`]. It has
/// `receive_from_now`.
macro_rules! datagram_methods {
    ($address:ty) => {
        /// Sends a datagram to the peer that this socket is connected to. Cancel-safe: it is sent
        /// as a whole or not at all.
        ///
        /// # Errors
        /// `NotConnected` (or `EDESTADDRREQ`) without a peer: `connect` first, or use `send_to`.
        pub async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
            let sent = self.source().io(Direction::Write, || self.send_now(bytes));
            sent.await
        }

        /// Sends as `send` does if there is room now; otherwise fails with `WouldBlock`: wait for
        /// `writable`.
        pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
            self.source()
                .try_io(Direction::Write, || self.send_now(bytes))
        }

        /// Polls for what `send` awaits: the last task that polled is woken.
        pub fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.source()
                .poll_io(Direction::Write, cx, || self.send_now(bytes))
        }

        /// The next datagram. What does not fit into the buffer is lost. Cancel-safe: a dropped
        /// wait loses none.
        pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
            let received = self
                .source()
                .io(Direction::Read, || self.receive_now(buffer));
            received.await
        }

        /// Receives as `recv` does if there is a datagram now; otherwise fails with `WouldBlock`:
        /// wait for `readable`.
        pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
            self.source()
                .try_io(Direction::Read, || self.receive_now(buffer))
        }

        /// Polls for what `recv` awaits, into the part of `buf` that is not filled: the last task
        /// that polled is woken.
        pub fn poll_recv(
            &self,
            cx: &mut Context<'_>,
            buf: &mut $crate::io::ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.source()
                .poll_io(Direction::Read, cx, || self.receive_into(buf))
        }

        /// Receives as `recv` does, and appends to `buf` (a `BytesMut`, a `Vec<u8>`). Cancel-safe.
        pub async fn recv_buf<B: ::bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
            let attempt = || {
                let (count, result) =
                    $crate::io::read_buf::fill_chunk(buf, |chunk| self.receive_into(chunk));
                result.map(|()| count)
            };
            self.source().io(Direction::Read, attempt).await
        }

        /// Receives as `recv_buf` does if there is a datagram now; otherwise fails with
        /// `WouldBlock`: wait for `readable`.
        pub fn try_recv_buf<B: ::bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
            self.source().try_io(Direction::Read, || {
                let (count, result) =
                    $crate::io::read_buf::fill_chunk(buf, |chunk| self.receive_into(chunk));
                result.map(|()| count)
            })
        }

        /// Receives as `recv_from` does, and appends to `buf` (a `BytesMut`, a `Vec<u8>`).
        /// Cancel-safe.
        pub async fn recv_buf_from<B: ::bytes::BufMut>(
            &self,
            buf: &mut B,
        ) -> io::Result<(usize, $address)> {
            let attempt = || {
                let (count, result) =
                    $crate::io::read_buf::fill_chunk(buf, |chunk| self.receive_from_into(chunk));
                result.map(|from| (count, from))
            };
            self.source().io(Direction::Read, attempt).await
        }

        /// Receives as `recv_buf_from` does if there is a datagram now; otherwise fails with
        /// `WouldBlock`: wait for `readable`.
        pub fn try_recv_buf_from<B: ::bytes::BufMut>(
            &self,
            buf: &mut B,
        ) -> io::Result<(usize, $address)> {
            self.source().try_io(Direction::Read, || {
                let (count, result) =
                    $crate::io::read_buf::fill_chunk(buf, |chunk| self.receive_from_into(chunk));
                result.map(|from| (count, from))
            })
        }

        fn source(&self) -> &::windlass_runtime::driver::Source {
            self.0.source()
        }

        fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
            match &self.0 {
                $crate::net::datagram::Socket::Real(socket) => socket.socket().send(bytes),
                $crate::net::datagram::Socket::Simulated(socket) => socket.send(bytes),
            }
        }

        fn receive_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
            match &self.0 {
                $crate::net::datagram::Socket::Real(socket) => socket.socket().recv(buffer),
                $crate::net::datagram::Socket::Simulated(socket) => {
                    Ok(socket.receive(buffer, false)?.0)
                }
            }
        }

        fn receive_into(&self, buf: &mut $crate::io::ReadBuf<'_>) -> io::Result<()> {
            let count = self.receive_now(buf.initialize_unfilled())?;
            buf.advance(count);
            Ok(())
        }

        fn receive_from_into(&self, buf: &mut $crate::io::ReadBuf<'_>) -> io::Result<$address> {
            let (count, from) = self.receive_from_now(buf.initialize_unfilled())?;
            buf.advance(count);
            Ok(from)
        }

        /// The next datagram, and where it comes from. What does not fit into the buffer is lost.
        /// Any number of tasks may wait. Cancel-safe: a dropped wait loses none.
        pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, $address)> {
            let received = self
                .source()
                .io(Direction::Read, || self.receive_from_now(buffer));
            received.await
        }

        /// Receives as `recv_from` does if there is a datagram now; otherwise fails with
        /// `WouldBlock`: wait for `readable`.
        pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, $address)> {
            self.source()
                .try_io(Direction::Read, || self.receive_from_now(buffer))
        }

        /// Polls for what `recv_from` awaits, into the part of `buf` that is not filled: the last
        /// task that polled is woken.
        pub fn poll_recv_from(
            &self,
            cx: &mut Context<'_>,
            buf: &mut $crate::io::ReadBuf<'_>,
        ) -> Poll<io::Result<$address>> {
            self.source()
                .poll_io(Direction::Read, cx, || self.receive_from_into(buf))
        }

        $crate::net::readiness::readiness_methods!(poll_recv_ready, poll_send_ready, |this| this
            .source());

        /// Waits until there is something to receive, or an error. It may be a false alarm: follow
        /// it with a `try_` method. Cancel-safe.
        pub async fn readable(&self) -> io::Result<()> {
            ready(self.source(), Direction::Read).await
        }

        /// Waits until there is room to send, or an error. It may be a false alarm: follow it with
        /// a `try_` method. Cancel-safe.
        pub async fn writable(&self) -> io::Result<()> {
            ready(self.source(), Direction::Write).await
        }
    };
}

pub(super) use datagram_methods;

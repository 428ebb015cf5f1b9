//! Unix datagrams.

use std::io;
use std::path::Path;
use std::task::{Context, Poll};

use super::{SocketAddr, address_of};
use crate::net::datagram::{Socket, datagram_methods};
use crate::net::from_std::from_std;
use crate::net::simulated::Network;
use crate::net::stream::ready;
use windlass_runtime::Handle;
use windlass_runtime::driver::Reality;
use windlass_runtime::driver::{Direction, Registered, unsupported};

/// A socket for datagrams within a host. All methods take `&self`.
///
/// Datagrams arrive whole and in order, and none is lost: a sender waits while its receiver's queue
/// is full.
///
/// ```
/// use windlass_runtime::Runtime;
/// use windlass_io::net::UnixDatagram;
///
/// Runtime::new()?.block_on(async {
///     let (one, other) = UnixDatagram::pair()?;
///     one.send(b"first").await?;
///     one.send(b"second").await?;
///     let mut buffer = [0; 16];
///     assert_eq!(other.recv(&mut buffer).await?, 5);
///     assert_eq!(other.recv(&mut buffer).await?, 6);
///     std::io::Result::Ok(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UnixDatagram(Socket<mio::net::UnixDatagram>);

impl UnixDatagram {
    /// A socket at `path`, on the runtime this is called in.
    ///
    /// # Errors
    /// `AddrInUse` if there is something at that path, a socket of a program that has ended
    /// included: remove the file.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixDatagram> {
        let handle = Handle::current_or_default();
        Ok(UnixDatagram(match handle.reality() {
            Reality::Real(driver) => {
                let socket = mio::net::UnixDatagram::bind(path)?;
                Socket::Real(Registered::new(driver, socket)?)
            }
            Reality::Simulated(simulator) => {
                let path = path.as_ref().to_owned();
                Socket::Simulated(Network::of(simulator).bind_path(path)?)
            }
        }))
    }

    /// A socket without a path: it can send, and cannot be answered.
    pub fn unbound() -> io::Result<UnixDatagram> {
        let handle = Handle::current_or_default();
        Ok(UnixDatagram(match handle.reality() {
            Reality::Real(driver) => {
                let socket = mio::net::UnixDatagram::unbound()?;
                Socket::Real(Registered::new(driver, socket)?)
            }
            Reality::Simulated(simulator) => Socket::Simulated(Network::of(simulator).unbound()),
        }))
    }

    /// Makes two sockets that are connected to each other.
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let handle = Handle::current_or_default();
        let (one, other) = match handle.reality() {
            Reality::Real(driver) => {
                let (one, other) = mio::net::UnixDatagram::pair()?;
                let one = Socket::Real(Registered::new(driver, one)?);
                (one, Socket::Real(Registered::new(driver, other)?))
            }
            Reality::Simulated(simulator) => {
                let (one, other) = Network::of(simulator).datagram_pair();
                (Socket::Simulated(one), Socket::Simulated(other))
            }
        };
        Ok((UnixDatagram(one), UnixDatagram(other)))
    }

    /// Takes over a socket of the standard library, on the runtime this is called in.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn from_std(socket: std::os::unix::net::UnixDatagram) -> io::Result<UnixDatagram> {
        socket.set_nonblocking(true)?;
        let socket = mio::net::UnixDatagram::from_std(socket);
        Ok(UnixDatagram(Socket::Real(Registered::here(socket)?)))
    }

    /// Takes the socket out of the runtime. It is in non-blocking mode: call
    /// `set_nonblocking(false)` to wait in its methods.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixDatagram> {
        Ok(self.0.into_real()?.into())
    }

    /// Makes the socket at `path` the peer: `send` goes there, and only what comes from there is
    /// received from now on.
    ///
    /// # Errors
    /// `NotFound` if there is nothing at that path.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().connect(path),
            Socket::Simulated(socket) => socket.connect_path(path.as_ref().to_owned()),
        }
    }

    datagram_methods!(SocketAddr);

    /// Sends a datagram to the socket at `path`. Cancel-safe: it is sent as a whole or not at all.
    ///
    /// While the receiver's queue is full of other senders' datagrams the kernel does not say when
    /// there is room: for several senders to a slow receiver, `connect` and `send`.
    ///
    /// # Errors
    /// `NotFound` if there is nothing at that path, `ConnectionRefused` if what was bound there is
    /// gone, `PermissionDenied` if it is connected to another.
    pub async fn send_to(&self, bytes: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let path = path.as_ref();
        let sent = self
            .source()
            .io(Direction::Write, || self.send_to_now(bytes, path));
        sent.await
    }

    /// Polls for what `send_to` awaits: the last task that polled is woken.
    pub fn poll_send_to<P: AsRef<Path>>(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: P,
    ) -> Poll<io::Result<usize>> {
        let path = target.as_ref();
        self.source()
            .poll_io(Direction::Write, cx, || self.send_to_now(buf, path))
    }

    /// Sends as `send_to` does if there is room now; otherwise fails with `WouldBlock`: wait for
    /// `writable`.
    pub fn try_send_to(&self, bytes: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let path = path.as_ref();
        self.source()
            .try_io(Direction::Write, || self.send_to_now(bytes, path))
    }

    /// Returns the address that the socket is bound to; an unnamed one if it is not bound.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().local_addr().map(SocketAddr),
            Socket::Simulated(socket) => address_of(&socket.local()?),
        }
    }

    /// The peer it is connected to.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().peer_addr().map(SocketAddr),
            Socket::Simulated(socket) => address_of(&socket.peer()?),
        }
    }

    /// The error that the socket keeps for the next operation, which then does not see it
    /// (`SO_ERROR`).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().take_error(),
            Socket::Simulated(_) => Ok(None),
        }
    }

    /// Ends one direction or both.
    ///
    /// # Errors
    /// What the operating system says; `Unsupported` in a simulation.
    pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().shutdown(how),
            Socket::Simulated(_) => Err(unsupported(
                "a simulated datagram socket has no directions to end: drop it",
            )),
        }
    }

    fn send_to_now(&self, bytes: &[u8], path: &Path) -> io::Result<usize> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().send_to(bytes, path),
            Socket::Simulated(socket) => socket.send_to_path(bytes, path.to_owned()),
        }
    }

    fn receive_from_now(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match &self.0 {
            Socket::Real(socket) => {
                let (count, from) = socket.socket().recv_from(buffer)?;
                Ok((count, SocketAddr(from)))
            }
            Socket::Simulated(socket) => {
                let (count, from) = socket.receive(buffer, false)?;
                Ok((count, address_of(&from)?))
            }
        }
    }
}

crate::net::readiness::descriptor!(UnixDatagram, |this| this.0.real().ok());

from_std!(std::os::unix::net::UnixDatagram => UnixDatagram);

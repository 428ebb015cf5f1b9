//! Accepting Unix stream connections.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::address::abstract_address;
use super::stream::UnixStream;
use super::{SocketAddr, address_of, driver_of_names};
use crate::net::listener::{Listener, ListeningSocket};
use crate::net::simulated::{Name, Network};
use crate::net::stream::Kind;
use windlass_runtime::Handle;
use windlass_runtime::driver::{Reality, Registered};

/// Accepts Unix stream connections at a path. See [`UnixStream`] for an example.
#[derive(Debug)]
pub struct UnixListener(Listener<mio::net::UnixListener>);

impl UnixListener {
    /// Listens at `path`, on the runtime this is called in. On Linux a path that begins with a zero
    /// byte is a name that is no file, see [`bind_addr`](UnixListener::bind_addr).
    ///
    /// # Errors
    /// `AddrInUse` if there is something at that path, a socket of a program that has ended
    /// included: remove the file.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        if let Some(address) = abstract_address(path.as_ref())? {
            return UnixListener::bind_addr(&address);
        }
        let handle = Handle::current_or_default();
        Ok(UnixListener(match handle.reality() {
            Reality::Real(driver) => {
                let socket = mio::net::UnixListener::bind(path)?;
                Listener::Real(Registered::new(driver, socket)?)
            }
            Reality::Simulated(simulator) => {
                let path = path.as_ref().to_owned();
                Listener::Simulated(Network::of(simulator).listen_path(path)?)
            }
        }))
    }

    /// Binds as `bind` does, at an address: of a path, or (on Linux) of a name that is no file and
    /// is free again when the listener is gone (`SocketAddr::from_abstract_name`).
    ///
    /// # Errors
    /// As `bind`; `Unsupported` for such a name in a simulation.
    pub fn bind_addr(address: &SocketAddr) -> io::Result<UnixListener> {
        if let Some(path) = address.as_pathname() {
            return UnixListener::bind(path);
        }
        let driver = driver_of_names(&Handle::current_or_default())?;
        let socket = mio::net::UnixListener::bind_addr(&address.0)?;
        let registered = Registered::new(&driver, socket)?;
        Ok(UnixListener(Listener::Real(registered)))
    }

    /// Takes over a listener of the standard library, on the runtime this is called in.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<UnixListener> {
        listener.set_nonblocking(true)?;
        let socket = mio::net::UnixListener::from_std(listener);
        Ok(UnixListener(Listener::Real(Registered::here(socket)?)))
    }

    /// The next connection, and where it comes from. Any number of tasks may wait. Cancel-safe: a
    /// dropped wait loses none.
    ///
    /// # Errors
    /// As those of [`TcpListener::accept`](crate::net::TcpListener::accept): out of descriptors,
    /// each call says so at once, and the connection waits.
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (stream, from) = self.0.accept().await?;
        Ok((UnixStream::new(stream), from))
    }

    /// Polls for what `accept` awaits: the last task that polled is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        let accepted = ready!(self.0.poll_accept(cx));
        Poll::Ready(accepted.map(|(stream, from)| (UnixStream::new(stream), from)))
    }

    /// The connections as they come, as a stream that never ends. Errors are items, as those of
    /// `accept`.
    pub fn incoming(&self) -> UnixIncoming<'_> {
        UnixIncoming(self)
    }

    /// Takes the listener out of the runtime. It is in non-blocking mode: call
    /// `set_nonblocking(false)` to wait in its methods.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixListener> {
        Ok(self.0.into_socket()?.into())
    }

    /// The error that the socket keeps for the next operation, which then does not see it
    /// (`SO_ERROR`).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match &self.0 {
            Listener::Real(listener) => listener.socket().take_error(),
            Listener::Simulated(_) => Ok(None),
        }
    }

    /// Returns the address that the listener is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl TryFrom<std::os::unix::net::UnixListener> for UnixListener {
    type Error = io::Error;

    /// Takes over a listener; see [`UnixListener::from_std`].
    fn try_from(listener: std::os::unix::net::UnixListener) -> io::Result<UnixListener> {
        UnixListener::from_std(listener)
    }
}

impl ListeningSocket for mio::net::UnixListener {
    type Connected = mio::net::UnixStream;
    type Address = SocketAddr;

    fn accept(&self) -> io::Result<(mio::net::UnixStream, SocketAddr)> {
        let (stream, from) = self.accept()?;
        Ok((stream, SocketAddr(from)))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.local_addr().map(SocketAddr)
    }

    fn kind(connected: Registered<mio::net::UnixStream>) -> Kind {
        Kind::Unix(connected)
    }

    fn address_of(name: &Name) -> io::Result<SocketAddr> {
        address_of(name)
    }
}

/// Connections as they come; see [`UnixListener::incoming`].
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct UnixIncoming<'a>(&'a UnixListener);

impl futures_core::Stream for UnixIncoming<'_> {
    type Item = io::Result<UnixStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = ready!(self.0.poll_accept(cx));
        Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
    }
}

crate::net::readiness::descriptor!(UnixListener, |this| this.0.socket().ok());

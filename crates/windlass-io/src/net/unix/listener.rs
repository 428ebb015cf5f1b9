//! Accepting Unix stream connections.

use std::io;
use std::path::Path;

use super::address::abstract_address;
use super::stream::UnixStream;
use super::{SocketAddr, address_of, driver_of_names};
use crate::net::from_std::from_std;
use crate::net::listener::{Listener, ListeningSocket, incoming, listener_methods};
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

    /// The error that the socket keeps for the next operation, which then does not see it
    /// (`SO_ERROR`).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match &self.0 {
            Listener::Real(listener) => listener.socket().take_error(),
            Listener::Simulated(_) => Ok(None),
        }
    }

    listener_methods!(UnixListener, std::os::unix::net::UnixListener => UnixStream, SocketAddr);
}

from_std!(std::os::unix::net::UnixListener => UnixListener);

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

incoming!(UnixIncoming of UnixListener => UnixStream);

crate::net::readiness::descriptor!(UnixListener, |this| this.0.socket().ok());

//! Unix stream connections.

use std::io;
use std::net::Shutdown;
use std::path::Path;

use super::address::abstract_address;
use super::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf, gid_t, pid_t, uid_t};
use super::{SocketAddr, address_of, driver_of_names};
use crate::net::from_std::from_std;
use crate::net::readiness::readiness_methods;
use crate::net::simulated::Network;
use crate::net::split;
use crate::net::stream::{
    AsStream, Kind, Stream, System, reading_methods, stream_traits, writing_methods,
};
use crate::os;
use windlass_runtime::Handle;
use windlass_runtime::driver::Reality;
use windlass_runtime::driver::{Direction, Registered, unsupported};

/// A Unix stream connection.
///
/// ```
/// use windlass_runtime::Runtime;
/// use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
/// use windlass_io::net::UnixStream;
///
/// let talk = || async {
///     let (mut one, mut other) = UnixStream::pair()?;
///     one.write_all(b"hello").await?;
///     drop(one);
///     let mut all = Vec::new();
///     other.read_to_end(&mut all).await?;
///     assert_eq!(all, b"hello");
///     std::io::Result::Ok(())
/// };
/// Runtime::new()?.block_on(talk())?;
/// Runtime::simulated(7).block_on(talk())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UnixStream(Stream);

impl UnixStream {
    pub(super) fn new(stream: Stream) -> UnixStream {
        UnixStream(stream)
    }

    /// Connects to the listener at `path`. On Linux a path that begins with a zero byte is a name
    /// that is no file, see [`connect_addr`](UnixStream::connect_addr).
    ///
    /// # Errors
    /// `NotFound` if there is nothing at that path; `ConnectionRefused` if what listened there is
    /// gone; `WouldBlock` if more connections wait there than the kernel keeps: try again later.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<UnixStream> {
        if let Some(address) = abstract_address(path.as_ref())? {
            return UnixStream::connect_to_name(&address);
        }
        let handle = Handle::current_or_default();
        Ok(UnixStream(match handle.reality() {
            // Either it is connected at once or it fails: the kernel knows no in-between here.
            Reality::Real(driver) => {
                let socket = mio::net::UnixStream::connect(path)?;
                Stream(Kind::Unix(Registered::new(driver, socket)?))
            }
            Reality::Simulated(simulator) => {
                let path = path.as_ref().to_owned();
                Stream(Kind::Simulated(
                    Network::of(simulator).connect_path(path).await?,
                ))
            }
        }))
    }

    /// Connects as `connect` does, to an address: of a path, or (on Linux) of a name that is no
    /// file (`SocketAddr::from_abstract_name`).
    ///
    /// # Errors
    /// As `connect`; `Unsupported` for such a name in a simulation.
    pub async fn connect_addr(address: &SocketAddr) -> io::Result<UnixStream> {
        if let Some(path) = address.as_pathname() {
            return UnixStream::connect(path).await;
        }
        UnixStream::connect_to_name(address)
    }

    fn connect_to_name(address: &SocketAddr) -> io::Result<UnixStream> {
        let driver = driver_of_names(&Handle::current_or_default())?;
        let socket = mio::net::UnixStream::connect_addr(&address.0)?;
        let registered = Registered::new(&driver, socket)?;
        Ok(UnixStream(Stream(Kind::Unix(registered))))
    }

    /// Makes two streams that are connected to each other, on the runtime this is called in.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let handle = Handle::current_or_default();
        let (one, other) = match handle.reality() {
            Reality::Real(driver) => {
                let (one, other) = mio::net::UnixStream::pair()?;
                let one = Stream(Kind::Unix(Registered::new(driver, one)?));
                (one, Stream(Kind::Unix(Registered::new(driver, other)?)))
            }
            Reality::Simulated(simulator) => {
                let (one, other) = Network::of(simulator).stream_pair();
                (Stream(Kind::Simulated(one)), Stream(Kind::Simulated(other)))
            }
        };
        Ok((UnixStream(one), UnixStream(other)))
    }

    /// Takes over a stream of the standard library, on the runtime this is called in.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn from_std(stream: std::os::unix::net::UnixStream) -> io::Result<UnixStream> {
        stream.set_nonblocking(true)?;
        let socket = mio::net::UnixStream::from_std(stream);
        Ok(UnixStream(Stream(Kind::Unix(Registered::here(socket)?))))
    }

    /// Takes the stream out of the runtime. It is in non-blocking mode: call
    /// `set_nonblocking(false)` to wait in its methods.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixStream> {
        match self.0.0 {
            Kind::Unix(registered) => Ok(registered.into_socket().into()),
            Kind::Tcp(_) | Kind::Simulated(_) => Err(unsupported(NOT_REAL)),
        }
    }

    reading_methods!();
    writing_methods!();
    readiness_methods!(poll_read_ready, poll_write_ready, |this| this.0.source());

    /// Reads as `read` does, but the bytes stay there for the next read. Cancel-safe.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let peeked = self.0.source().io(Direction::Read, || match &self.0.0 {
            Kind::Unix(registered) => os::peek(registered.socket(), buffer),
            Kind::Simulated(stream) => stream.peek(buffer),
            Kind::Tcp(_) => Err(unsupported(NOT_REAL)),
        });
        peeked.await
    }

    /// Borrows the stream as two halves, for two futures of one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        split::borrowed(self)
    }

    /// Takes the stream apart into two halves, for two tasks. Dropping the writing half ends that
    /// direction.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split::owned(self)
    }

    /// Ends one direction or both. Reads that wait see the end, writes fail with `BrokenPipe`.
    pub fn shutdown_socket(&self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }

    /// Returns this end's address; an unnamed one, unless the stream was accepted.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0.0 {
            Kind::Unix(registered) => registered.socket().local_addr().map(SocketAddr),
            Kind::Simulated(stream) => address_of(stream.local()),
            Kind::Tcp(_) => Err(unsupported(NOT_REAL)),
        }
    }

    /// The other end's address; unnamed, unless this end has connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0.0 {
            Kind::Unix(registered) => registered.socket().peer_addr().map(SocketAddr),
            Kind::Simulated(stream) => address_of(stream.peer()),
            Kind::Tcp(_) => Err(unsupported(NOT_REAL)),
        }
    }

    /// Returns the process at the other end, as the kernel noted it when the connection was made.
    ///
    /// # Errors
    /// `Unsupported` in a simulation, and on systems other than Linux.
    pub fn peer_cred(&self) -> io::Result<UCred> {
        match &self.0.0 {
            Kind::Unix(registered) => {
                let (pid, uid, gid) = os::peer_credentials(registered.socket())?;
                Ok(UCred { pid, uid, gid })
            }
            Kind::Tcp(_) | Kind::Simulated(_) => Err(unsupported(NOT_REAL)),
        }
    }

    /// The error that the socket keeps for the next operation, which then does not see it
    /// (`SO_ERROR`).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self.0.system() {
            System::Real(socket) => socket.take_error(),
            System::Simulated(_) => Ok(None),
        }
    }
}

const NOT_REAL: &str =
    "a simulated socket is none of the operating system's: this works outside of simulations only";

/// The process at the other end of a Unix stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UCred {
    pid: pid_t,
    uid: uid_t,
    gid: gid_t,
}

impl UCred {
    /// Returns the user that the process runs as.
    pub fn uid(&self) -> uid_t {
        self.uid
    }

    /// Returns the group that the process runs as.
    pub fn gid(&self) -> gid_t {
        self.gid
    }

    /// Returns the process id, where the system knows it.
    pub fn pid(&self) -> Option<pid_t> {
        Some(self.pid)
    }
}

from_std!(std::os::unix::net::UnixStream => UnixStream);

stream_traits!(UnixStream);

crate::net::readiness::descriptor!(UnixStream, |this| match &this.0.0 {
    Kind::Unix(registered) => Some(registered.socket()),
    Kind::Tcp(_) | Kind::Simulated(_) => None,
});

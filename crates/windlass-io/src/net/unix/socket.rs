//! A Unix socket before it connects or listens.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use windlass_core::sync::Mutex;

use super::datagram::UnixDatagram;
use super::listener::UnixListener;
use super::stream::UnixStream;
use windlass_runtime::Handle;
use windlass_runtime::driver::Reality;

/// A Unix socket to be: it is bound, then it connects, listens or sends datagrams.
#[derive(Debug)]
pub struct UnixSocket {
    socket: Socket,
    kind: Type,
    /// Where a simulated socket is bound.
    bound: Mutex<Option<PathBuf>>,
}

impl UnixSocket {
    /// Makes a socket for datagrams.
    pub fn new_datagram() -> io::Result<UnixSocket> {
        UnixSocket::new(Type::DGRAM)
    }

    /// Makes a socket for connections.
    pub fn new_stream() -> io::Result<UnixSocket> {
        UnixSocket::new(Type::STREAM)
    }

    fn new(kind: Type) -> io::Result<UnixSocket> {
        let socket = Socket::new(Domain::UNIX, kind, None)?;
        socket.set_nonblocking(true)?;
        Ok(UnixSocket {
            socket,
            kind,
            bound: Mutex::new(None),
        })
    }

    /// Binds the socket to a path.
    ///
    /// # Errors
    /// `AddrInUse` if there is something at that path.
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        if is_simulated() {
            *self.bound.lock() = Some(path.as_ref().to_owned());
            return Ok(());
        }
        self.socket.bind(&SockAddr::unix(path)?)
    }

    /// Listens, with room for `backlog` connections that were not accepted yet.
    ///
    /// # Errors
    /// If this is a socket for datagrams, and what the operating system says.
    pub fn listen(self, backlog: u32) -> io::Result<UnixListener> {
        self.refuse(Type::DGRAM, "listen cannot be called on a datagram socket")?;
        if is_simulated() {
            let bound = self.bound.into_inner();
            return UnixListener::bind(bound.ok_or(io::ErrorKind::InvalidInput)?);
        }
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        self.socket.listen(backlog)?;
        UnixListener::from_std(self.socket.into())
    }

    /// Connects to the listener at `path`.
    ///
    /// # Errors
    /// If this is a socket for datagrams, and those of [`UnixStream::connect`].
    pub async fn connect(self, path: impl AsRef<Path>) -> io::Result<UnixStream> {
        self.refuse(Type::DGRAM, "connect cannot be called on a datagram socket")?;
        if is_simulated() {
            return UnixStream::connect(path).await;
        }
        // Either it is connected at once or it fails: the kernel knows no in-between here.
        self.socket.connect(&SockAddr::unix(path)?)?;
        UnixStream::from_std(self.socket.into())
    }

    /// Makes it a socket that sends and receives datagrams.
    ///
    /// # Errors
    /// If this is a socket for connections.
    pub fn datagram(self) -> io::Result<UnixDatagram> {
        self.refuse(Type::STREAM, "datagram cannot be called on a stream socket")?;
        if is_simulated() {
            return match self.bound.into_inner() {
                Some(path) => UnixDatagram::bind(path),
                None => UnixDatagram::unbound(),
            };
        }
        UnixDatagram::from_std(self.socket.into())
    }

    fn refuse(&self, kind: Type, text: &'static str) -> io::Result<()> {
        match self.kind == kind {
            true => Err(io::Error::other(text)),
            false => Ok(()),
        }
    }
}

/// Also in a simulation, where the socket of the kernel stays unused.
impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for UnixSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl IntoRawFd for UnixSocket {
    fn into_raw_fd(self) -> RawFd {
        self.socket.into_raw_fd()
    }
}

fn is_simulated() -> bool {
    matches!(
        Handle::current_or_default().reality(),
        Reality::Simulated(_)
    )
}

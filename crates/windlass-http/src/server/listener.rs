//! What a server can listen on.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;

use futures_io::{AsyncRead, AsyncWrite};
use windlass_io::net::unix::SocketAddr as UnixSocketAddr;
use windlass_io::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// What a connection is made of: everything that can be read and written.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<IO: AsyncRead + AsyncWrite + Unpin + Send + 'static> Transport for IO {}

/// What says where a connection comes from: everything that can be copied and printed.
pub trait Remote: Clone + Debug + Send + Sync + 'static {}

impl<A: Clone + Debug + Send + Sync + 'static> Remote for A {}

/// Something that connections come from.
pub trait Listener: Send + 'static {
    /// The type of its connections.
    type Stream: Transport;
    /// Where a connection comes from.
    type Address: Remote;

    /// The next connection, and where it comes from. Must be cancel-safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Stream, Self::Address)>> + Send;

    /// Returns where it listens, as people who observe the runtime see it.
    fn local_address(&self) -> Option<String> {
        None
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    type Address = SocketAddr;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, remote) = TcpListener::accept(self).await?;
        // Answers are not to wait for company. A connection that is broken already says so later.
        let _ = stream.set_nodelay(true);
        Ok((stream, remote))
    }

    fn local_address(&self) -> Option<String> {
        self.local_addr().ok().map(|address| address.to_string())
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    type Address = UnixSocketAddr;

    async fn accept(&mut self) -> io::Result<(UnixStream, UnixSocketAddr)> {
        UnixListener::accept(self).await
    }

    fn local_address(&self) -> Option<String> {
        let address = self.local_addr().ok()?;
        address.as_pathname().map(|path| path.display().to_string())
    }
}

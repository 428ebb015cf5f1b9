//! What a server can listen on.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;

use futures_io::{AsyncRead, AsyncWrite};
use windlass_runtime::net::{TcpListener, TcpStream};

/// Something that connections come from.
pub trait Listener: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// Where a connection comes from.
    type Address: Clone + Debug + Send + Sync + 'static;

    /// The next connection, and where it comes from. Must be cancel-safe.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Stream, Self::Address)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    type Address = SocketAddr;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        TcpListener::accept(self).await
    }
}

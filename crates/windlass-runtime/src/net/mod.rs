//! TCP streams and listeners: real sockets on a real runtime, the simulated network in a simulation.
//!
//! ```
//! use windlass_runtime::{Runtime, net};
//!
//! let echo = || async {
//!     let listener = net::TcpListener::bind("localhost:0").await?;
//!     let address = listener.local_addr()?;
//!     let server = windlass_runtime::spawn(async move {
//!         let (mut stream, _) = listener.accept().await?;
//!         let mut word = [0; 5];
//!         stream.read_exact(&mut word).await?;
//!         stream.write_all(&word).await
//!     });
//!     let mut client = net::TcpStream::connect(address).await?;
//!     client.write_all(b"hello").await?;
//!     let mut word = [0; 5];
//!     client.read_exact(&mut word).await?;
//!     assert_eq!(&word, b"hello");
//!     server.await.expect("it does not panic")
//! };
//! Runtime::new()?.block_on(echo())?;
//! Runtime::simulated(7).block_on(echo())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod real;
pub(crate) mod simulated;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

pub use self::address::{Address, ToAddress};
use crate::handle::Handle;
use crate::runtime::Reality;

/// Accepts TCP connections.
#[derive(Debug)]
pub struct TcpListener(Listener);

#[derive(Debug)]
enum Listener {
    Real(real::Listener),
    Simulated(simulated::Listener),
}

/// A TCP connection.
#[derive(Debug)]
pub struct TcpStream(Stream);

#[derive(Debug)]
enum Stream {
    Real(real::Stream),
    Simulated(simulated::Stream),
}

impl TcpListener {
    /// Listens on `address`; port 0 takes a free one.
    pub async fn bind(address: impl ToAddress) -> io::Result<TcpListener> {
        let handle = Handle::current_or_default();
        let address = address.to_address()?;
        Ok(TcpListener(match &handle.shared().world {
            Reality::Real(driver) => {
                let addresses = address.resolve(&handle).await?;
                Listener::Real(real::Listener::bind(driver, &addresses)?)
            }
            Reality::Simulated(simulator) => {
                Listener::Simulated(simulator.network().bind(&address)?)
            }
        }))
    }

    /// The next connection, and where it comes from. Cancel-safe: a dropped wait loses none.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// As `accept`, for a poll function.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        match &self.0 {
            Listener::Real(listener) => listener
                .poll_accept(cx)
                .map_ok(|(stream, from)| (TcpStream(Stream::Real(stream)), from)),
            Listener::Simulated(listener) => listener
                .poll_accept(cx)
                .map_ok(|(stream, from)| (TcpStream(Stream::Simulated(stream)), from)),
        }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Listener::Real(listener) => listener.local_addr(),
            Listener::Simulated(listener) => Ok(listener.local_addr()),
        }
    }
}

impl TcpStream {
    /// Connects to `address`; of several that a name stands for, to the first that answers.
    pub async fn connect(address: impl ToAddress) -> io::Result<TcpStream> {
        let handle = Handle::current_or_default();
        let address = address.to_address()?;
        Ok(TcpStream(match &handle.shared().world {
            Reality::Real(driver) => {
                let addresses = address.resolve(&handle).await?;
                Stream::Real(real::Stream::connect(driver, &addresses).await?)
            }
            Reality::Simulated(simulator) => {
                Stream::Simulated(simulator.network().connect(&address).await?)
            }
        }))
    }

    /// Reads what is there, at least a byte; 0 at the end. Cancel-safe.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read_from(cx, buffer)).await
    }

    /// Fills the buffer. Not cancel-safe: what was read before the drop is lost with the wait.
    pub async fn read_exact(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let read = self.read(buffer).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            buffer = &mut buffer[read..];
        }
        Ok(())
    }

    /// Writes some of `bytes`. Cancel-safe.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_write_to(cx, bytes)).await
    }

    /// Writes all of `bytes`. Not cancel-safe: how much was written before the drop is not known.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Says that nothing more will be written; the other side reads to the end.
    pub fn shutdown_write(&mut self) -> io::Result<()> {
        match &self.0 {
            Stream::Real(stream) => stream.shutdown_write(),
            Stream::Simulated(stream) => stream.shutdown_write(),
        }
    }

    /// This end's address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Stream::Real(stream) => stream.local_addr(),
            Stream::Simulated(stream) => Ok(stream.local_addr()),
        }
    }

    /// The other end's address.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Stream::Real(stream) => stream.peer_addr(),
            Stream::Simulated(stream) => Ok(stream.peer_addr()),
        }
    }

    fn poll_read_from(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match &self.0 {
            Stream::Real(stream) => stream.poll_read(cx, buffer),
            Stream::Simulated(stream) => stream.poll_read(cx, buffer),
        }
    }

    fn poll_write_to(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &self.0 {
            Stream::Real(stream) => stream.poll_write(cx, bytes),
            Stream::Simulated(stream) => stream.poll_write(cx, bytes),
        }
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_from(cx, buffer)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_to(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.shutdown_write())
    }
}

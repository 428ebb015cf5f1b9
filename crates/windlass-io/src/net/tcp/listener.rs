//! Accepting TCP connections.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::{Domain, Protocol, Socket, Type};

use super::address_of;
use super::stream::TcpStream;
use crate::net::address::ToSocketAddrs;
use crate::net::dns::{first_of, resolve};
use crate::net::listener::{Listener, ListeningSocket};
use crate::net::simulated::{Name, Network};
use crate::net::stream::Kind;
use windlass_runtime::Handle;
use windlass_runtime::driver::{Reality, Registered};

/// Connections that the kernel keeps until they are accepted; what tokio asks for.
const BACKLOG: i32 = 1024;

/// Accepts TCP connections.
///
/// ```
/// use windlass_runtime::Runtime;
/// use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
/// use windlass_io::net::{TcpListener, TcpStream};
///
/// Runtime::new()?.block_on(async {
///     let listener = TcpListener::bind("localhost:0").await?;
///     let address = listener.local_addr()?;
///     let server = windlass_runtime::spawn(async move {
///         let (stream, _) = listener.accept().await?;
///         let (mut reading, mut writing) = stream.into_split();
///         let mut all = Vec::new();
///         reading.read_to_end(&mut all).await?;
///         all.reverse();
///         writing.write_all(&all).await
///     });
///     let mut client = TcpStream::connect(address).await?;
///     client.write_all(b"stressed").await?;
///     client.shutdown().await?;
///     let mut answer = Vec::new();
///     client.read_to_end(&mut answer).await?;
///     assert_eq!(answer, b"desserts");
///     server.await.expect("it does not panic")
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TcpListener(Listener<mio::net::TcpListener>);

impl TcpListener {
    /// Listens on `address`; port 0 takes a free one. Of several that a name stands for, on the
    /// first that will do. A port whose last connections are still closing can be bound again.
    ///
    /// # Errors
    /// `AddrInUse` if a socket listens there: end that, or take another port.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
        let handle = Handle::current_or_default();
        let addresses = resolve(&address, &handle).await?;
        Ok(TcpListener(match handle.reality() {
            Reality::Real(driver) => {
                let socket = first_of(&addresses, listen)?;
                Listener::Real(Registered::new(driver, socket)?)
            }
            Reality::Simulated(simulator) => {
                let network = Network::of(simulator);
                Listener::Simulated(first_of(&addresses, |address| network.listen(address))?)
            }
        }))
    }

    /// Takes over a listener of the standard library, on the runtime this is called in.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<TcpListener> {
        listener.set_nonblocking(true)?;
        let socket = mio::net::TcpListener::from_std(listener);
        Ok(TcpListener(Listener::Real(Registered::here(socket)?)))
    }

    /// The next connection, and where it comes from. Any number of tasks may wait. Cancel-safe: a
    /// dropped wait loses none.
    ///
    /// # Errors
    /// An error does not end the listener. Out of descriptors (`EMFILE`, `ENFILE`) or memory, the
    /// connection stays where it is and each call says so again at once, without waiting, as long
    /// as that lasts: a loop that goes on after an error should sleep for a moment, and will then
    /// get the connection.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, from) = self.0.accept().await?;
        Ok((TcpStream::new(stream), from))
    }

    /// Polls for what `accept` awaits: the last task that polled is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let accepted = ready!(self.0.poll_accept(cx));
        Poll::Ready(accepted.map(|(stream, from)| (TcpStream::new(stream), from)))
    }

    /// The connections as they come, as a stream that never ends. Errors are items, as those of
    /// `accept`.
    pub fn incoming(&self) -> TcpIncoming<'_> {
        TcpIncoming(self)
    }

    /// Takes the listener out of the runtime. It is in non-blocking mode: call
    /// `set_nonblocking(false)` to wait in its methods.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
        Ok(self.0.into_socket()?.into())
    }

    /// Returns how many routers a packet may pass (`IP_TTL`).
    pub fn ttl(&self) -> io::Result<u32> {
        self.0.socket()?.ttl()
    }

    /// Sets how many routers a packet may pass (`IP_TTL`).
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.0.socket()?.set_ttl(ttl)
    }

    /// Listens on a socket that is bound and listens.
    pub(super) fn from_listening(listener: Listener<mio::net::TcpListener>) -> TcpListener {
        TcpListener(listener)
    }

    /// Returns the address that the listener is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl TryFrom<std::net::TcpListener> for TcpListener {
    type Error = io::Error;

    /// Takes over a listener that is in non-blocking mode; see [`TcpListener::from_std`].
    fn try_from(listener: std::net::TcpListener) -> io::Result<TcpListener> {
        TcpListener::from_std(listener)
    }
}

impl ListeningSocket for mio::net::TcpListener {
    type Connected = mio::net::TcpStream;
    type Address = SocketAddr;

    fn accept(&self) -> io::Result<(mio::net::TcpStream, SocketAddr)> {
        self.accept()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }

    fn kind(connected: Registered<mio::net::TcpStream>) -> Kind {
        Kind::Tcp(connected)
    }

    fn address_of(name: &Name) -> io::Result<SocketAddr> {
        address_of(name)
    }
}

/// Connections as they come; see [`TcpListener::incoming`].
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct TcpIncoming<'a>(&'a TcpListener);

impl futures_core::Stream for TcpIncoming<'_> {
    type Item = io::Result<TcpStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = ready!(self.0.poll_accept(cx));
        Poll::Ready(Some(accepted.map(|(stream, _)| stream)))
    }
}

fn listen(address: SocketAddr) -> io::Result<mio::net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(mio::net::TcpListener::from_std(socket.into()))
}

crate::net::readiness::descriptor!(TcpListener, |this| this.0.socket().ok());

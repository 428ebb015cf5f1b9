//! Accepting TCP connections.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use super::address_of;
use super::stream::TcpStream;
use crate::net::address::ToSocketAddrs;
use crate::net::dns::{first_of, resolve};
use crate::net::from_std::from_std;
use crate::net::listener::{Listener, ListeningSocket, incoming, listener_methods};
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

    listener_methods!(TcpListener, std::net::TcpListener => TcpStream, SocketAddr);
}

from_std!(std::net::TcpListener => TcpListener);

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

incoming!(TcpIncoming of TcpListener => TcpStream);

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

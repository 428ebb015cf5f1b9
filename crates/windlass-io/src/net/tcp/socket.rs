//! A TCP socket before it connects or listens.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use windlass_core::sync::Mutex;

use super::listener::TcpListener;
use super::stream::{TcpStream, connected};
use crate::net::address::Address;
use crate::net::listener::Listener;
use crate::net::simulated::Network;
use windlass_runtime::Handle;
use windlass_runtime::driver::{Reality, Registered, unsupported};

/// A TCP socket to be: its options are set, then it connects or listens.
///
/// In a simulation the options have no effect, and a socket that connects cannot be bound before.
///
/// ```
/// use windlass_io::net::TcpSocket;
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let socket = TcpSocket::new_v4()?;
/// socket.set_reuseaddr(true)?;
/// socket.bind("127.0.0.1:0".parse().expect("an address"))?;
/// let listener = socket.listen(64)?;
/// assert_ne!(listener.local_addr()?.port(), 0);
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TcpSocket {
    socket: Socket,
    /// Where a simulated socket is bound.
    bound: Mutex<Option<SocketAddr>>,
}

/// Options that have a getter and a setter in socket2.
macro_rules! options {
    ($($(#[$doc:meta])+ $set:ident, $get:ident: $type:ty = $socket_set:ident, $socket_get:ident;)+) => { $(
        $(#[$doc])+
        pub fn $set(&self, value: $type) -> io::Result<()> {
            self.socket.$socket_set(value)
        }

        #[doc = concat!("Returns what [`", stringify!($set), "`](TcpSocket::", stringify!($set), ") set.")]
        pub fn $get(&self) -> io::Result<$type> {
            self.socket.$socket_get()
        }
    )+ };
}

impl TcpSocket {
    /// Makes a socket for IPv4.
    pub fn new_v4() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV4)
    }

    /// Makes a socket for IPv6.
    pub fn new_v6() -> io::Result<TcpSocket> {
        TcpSocket::new(Domain::IPV6)
    }

    fn new(domain: Domain) -> io::Result<TcpSocket> {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        Ok(TcpSocket::around(socket))
    }

    fn around(socket: Socket) -> TcpSocket {
        TcpSocket {
            socket,
            bound: Mutex::new(None),
        }
    }

    /// Takes over a socket of the standard library that is not connected. It must be in
    /// non-blocking mode.
    pub fn from_std_stream(std_stream: std::net::TcpStream) -> TcpSocket {
        TcpSocket::around(std_stream.into())
    }

    options! {
        /// Asks the other end for a sign of life after much silence (`SO_KEEPALIVE`).
        set_keepalive, keepalive: bool = set_keepalive, keepalive;
        /// Lets a port be bound again whose last connections are still closing (`SO_REUSEADDR`).
        set_reuseaddr, reuseaddr: bool = set_reuse_address, reuse_address;
        /// Lets several sockets be bound to one port (`SO_REUSEPORT`).
        set_reuseport, reuseport: bool = set_reuse_port, reuse_port;
        /// What a drop does with bytes that were not sent yet (`SO_LINGER`).
        set_linger, linger: Option<Duration> = set_linger, linger;
        /// Sends small writes at once instead of collecting them (`TCP_NODELAY`).
        set_nodelay, nodelay: bool = set_tcp_nodelay, tcp_nodelay;
        /// Sets the type of service of packets (`IP_TOS`).
        set_tos_v4, tos_v4: u32 = set_tos_v4, tos_v4;
        /// Sets the traffic class of packets (`IPV6_TCLASS`).
        set_tclass_v6, tclass_v6: u32 = set_tclass_v6, tclass_v6;
    }

    /// Makes a drop discard bytes that were not sent yet and reset the connection.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Sets how many bytes the system keeps to be sent (`SO_SNDBUF`).
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_send_buffer_size(size as usize)
    }

    /// Returns how many bytes the system keeps to be sent.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.socket.send_buffer_size().map(|size| size as u32)
    }

    /// Sets how many received bytes the system keeps to be read (`SO_RCVBUF`).
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_recv_buffer_size(size as usize)
    }

    /// Returns how many received bytes the system keeps to be read.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.socket.recv_buffer_size().map(|size| size as u32)
    }

    /// Returns the network interface that the socket is bound to (`SO_BINDTODEVICE`).
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        self.socket.device()
    }

    /// Binds the socket to a network interface, or to none again (`SO_BINDTODEVICE`).
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        self.socket.bind_device(interface)
    }

    /// Returns the address that the socket is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        if let Some(address) = *self.bound.lock() {
            return Ok(address);
        }
        let address = self.socket.local_addr()?;
        address.as_socket().ok_or_else(|| {
            let text = "invalid address family (not IPv4 or IPv6)";
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }

    /// The error that the socket keeps for the next operation (`SO_ERROR`).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    /// Binds the socket; port 0 takes a free one.
    ///
    /// # Errors
    /// `AddrInUse` if a socket is bound there.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        if let Reality::Simulated(_) = Handle::current_or_default().reality() {
            *self.bound.lock() = Some(addr);
            return Ok(());
        }
        self.socket.bind(&addr.into())
    }

    /// Connects to `addr`. Dropping the wait gives the attempt up.
    ///
    /// # Errors
    /// `ConnectionRefused` if no socket listens there; `Unsupported` in a simulation if the socket
    /// was bound before.
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        let handle = Handle::current_or_default();
        let Reality::Real(driver) = handle.reality() else {
            if self.bound.lock().is_some() {
                return Err(unsupported(
                    "a simulated socket cannot be bound before it connects: leave `bind` out",
                ));
            }
            return TcpStream::connect(addr).await;
        };
        match self.socket.connect(&addr.into()) {
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            result => result?,
        }
        let socket = mio::net::TcpStream::from_std(self.socket.into());
        connected(driver, socket).await.map(TcpStream::new)
    }

    /// Listens, with room for `backlog` connections that were not accepted yet.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let handle = Handle::current_or_default();
        let listener = match handle.reality() {
            Reality::Real(driver) => {
                let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
                self.socket.listen(backlog)?;
                let socket = mio::net::TcpListener::from_std(self.socket.into());
                Listener::Real(Registered::new(driver, socket)?)
            }
            Reality::Simulated(simulator) => {
                let Some(address) = *self.bound.lock() else {
                    return Err(io::ErrorKind::InvalidInput.into());
                };
                let network = Network::of(simulator);
                let address = network.resolve(&Address::Socket(address))?;
                Listener::Simulated(network.listen(address)?)
            }
        };
        Ok(TcpListener::from_listening(listener))
    }
}

/// Also in a simulation, where the socket of the kernel stays unused.
impl AsFd for TcpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for TcpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl IntoRawFd for TcpSocket {
    fn into_raw_fd(self) -> RawFd {
        self.socket.into_raw_fd()
    }
}

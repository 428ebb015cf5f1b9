//! UDP: datagrams between hosts.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};

use socket2::SockRef;

use super::address::{Address, ToSocketAddrs};
use super::datagram::{Socket, datagram_methods};
use super::dns::{first_of, resolve};
use super::from_std::from_std;
use super::simulated::Name;
use super::stream::ready;
use crate::io::ReadBuf;
use crate::net::simulated::Network;
use windlass_runtime::Handle;
use windlass_runtime::driver::Reality;
use windlass_runtime::driver::{Direction, Registered};

/// A socket for UDP datagrams. All methods take `&self`: share it in an `Arc` to send in one task
/// and receive in another.
///
/// A datagram arrives as a whole, late, out of order, twice or not at all.
///
/// ```
/// use windlass_runtime::Runtime;
/// use windlass_io::net::UdpSocket;
///
/// let exchange = || async {
///     let (one, other) = (UdpSocket::bind("127.0.0.1:0").await?, UdpSocket::bind("127.0.0.1:0").await?);
///     one.send_to(b"ping", other.local_addr()?).await?;
///     let mut buffer = [0; 16];
///     let (count, from) = other.recv_from(&mut buffer).await?;
///     assert_eq!((&buffer[..count], from), (&b"ping"[..], one.local_addr()?));
///     std::io::Result::Ok(())
/// };
/// Runtime::new()?.block_on(exchange())?;
/// Runtime::simulated(7).block_on(exchange())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UdpSocket(Socket<mio::net::UdpSocket>);

/// Options that only sockets of the operating system have.
macro_rules! real_options {
    ($(
        $(#[$doc:meta])+
        $set:ident, $get:ident: $type:ty = $socket_set:ident, $socket_get:ident;
    )+) => { $(
        $(#[$doc])+
        ///
        /// # Errors
        /// `Unsupported` in a simulation.
        pub fn $set(&self, value: $type) -> io::Result<()> {
            SockRef::from(self.0.real()?).$socket_set(value)
        }

        #[doc = concat!("Returns what [`", stringify!($set), "`](UdpSocket::", stringify!($set),
            ") set.")]
        ///
        /// # Errors
        /// `Unsupported` in a simulation.
        pub fn $get(&self) -> io::Result<$type> {
            SockRef::from(self.0.real()?).$socket_get()
        }
    )+ };
}

impl UdpSocket {
    /// A socket at `address`; port 0 takes a free one.
    ///
    /// # Errors
    /// `AddrInUse` if a socket is bound there: end that, or take another port.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<UdpSocket> {
        let handle = Handle::current_or_default();
        let addresses = resolve(&address, &handle).await?;
        Ok(UdpSocket(match handle.reality() {
            Reality::Real(driver) => {
                let socket = first_of(&addresses, mio::net::UdpSocket::bind)?;
                Socket::Real(Registered::new(driver, socket)?)
            }
            Reality::Simulated(simulator) => {
                let network = Network::of(simulator);
                Socket::Simulated(first_of(&addresses, |address| network.bind(address))?)
            }
        }))
    }

    /// Takes over a socket of the standard library, on the runtime this is called in.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<UdpSocket> {
        socket.set_nonblocking(true)?;
        let socket = mio::net::UdpSocket::from_std(socket);
        Ok(UdpSocket(Socket::Real(Registered::here(socket)?)))
    }

    /// Takes the socket out of the runtime. It is in non-blocking mode: call
    /// `set_nonblocking(false)` to wait in its methods.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn into_std(self) -> io::Result<std::net::UdpSocket> {
        Ok(self.0.into_real()?.into())
    }

    /// Makes `address` the peer: `send` goes there, and only what comes from there is received from
    /// now on. Nothing is sent.
    pub async fn connect(&self, address: impl ToSocketAddrs) -> io::Result<()> {
        let addresses = resolve(&address, &Handle::current_or_default()).await?;
        first_of(&addresses, |address| match &self.0 {
            Socket::Real(socket) => socket.socket().connect(address),
            Socket::Simulated(socket) => socket.connect(address),
        })
    }

    datagram_methods!(SocketAddr);

    /// Sends a datagram to `address`; of several that a name stands for, to the first. Cancel-safe:
    /// it is sent as a whole or not at all.
    ///
    /// # Errors
    /// `EMSGSIZE` if it is larger than a datagram can be: send less at once.
    pub async fn send_to(&self, bytes: &[u8], address: impl ToSocketAddrs) -> io::Result<usize> {
        let to = match (&self.0, address.to_address()?) {
            // The usual case, without a vector.
            (Socket::Real(_), Address::Socket(to)) => to,
            (_, address) => {
                let addresses = resolve(&address, &Handle::current_or_default()).await?;
                first_of(&addresses, Ok)?
            }
        };
        let sent = self
            .source()
            .io(Direction::Write, || self.send_to_now(bytes, to));
        sent.await
    }

    /// Sends as `send_to` does if there is room now; otherwise fails with `WouldBlock`: wait for
    /// `writable`.
    pub fn try_send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.source()
            .try_io(Direction::Write, || self.send_to_now(bytes, to))
    }

    /// Polls for what `send_to` awaits: the last task that polled is woken.
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.source()
            .poll_io(Direction::Write, cx, || self.send_to_now(bytes, to))
    }

    /// Receives as `recv` does, but the datagram stays there for the next call. Cancel-safe.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.peek_from(buf).await?.0)
    }

    /// Polls for what `peek` awaits, into the part of `buf` that is not filled: the last task that
    /// polled is woken.
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_peek_from(cx, buf).map_ok(drop)
    }

    /// Peeks as `peek` does if there is a datagram now; otherwise fails with `WouldBlock`: wait for
    /// `readable`.
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.try_peek_from(buf)?.0)
    }

    /// Receives as `recv_from` does, but the datagram stays there for the next call. Cancel-safe.
    pub async fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let peeked = self
            .source()
            .io(Direction::Read, || self.peek_from_now(buffer));
        peeked.await
    }

    /// Polls for what `peek_from` awaits, into the part of `buf` that is not filled: the last task
    /// that polled is woken.
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.source().poll_io(Direction::Read, cx, || {
            let (count, from) = self.peek_from_now(buf.initialize_unfilled())?;
            buf.advance(count);
            Ok(from)
        })
    }

    /// Peeks as `peek_from` does if there is a datagram now; otherwise fails with `WouldBlock`:
    /// wait for `readable`.
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source()
            .try_io(Direction::Read, || self.peek_from_now(buf))
    }

    /// Returns where the next datagram comes from; that stays there. Cancel-safe.
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        Ok(self.peek_from(&mut [0]).await?.1)
    }

    /// Polls for what `peek_sender` awaits: the last task that polled is woken.
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.poll_peek_from(cx, &mut ReadBuf::new(&mut [0]))
    }

    /// Returns where the next datagram comes from if there is one now; otherwise fails with
    /// `WouldBlock`.
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        Ok(self.try_peek_from(&mut [0])?.1)
    }

    fn peek_from_now(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().peek_from(buffer),
            Socket::Simulated(socket) => with_address(socket.receive(buffer, true)?),
        }
    }

    /// Returns the address that the socket is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().local_addr(),
            Socket::Simulated(socket) => with_address(((), socket.local()?)).map(|(_, name)| name),
        }
    }

    /// The peer it is connected to.
    ///
    /// # Errors
    /// `NotConnected` if there is none.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().peer_addr(),
            Socket::Simulated(socket) => with_address(((), socket.peer()?)).map(|(_, name)| name),
        }
    }

    /// Allows sending to broadcast addresses (`SO_BROADCAST`).
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().set_broadcast(on),
            Socket::Simulated(socket) => {
                socket.options().lock().broadcast = on;
                Ok(())
            }
        }
    }

    /// True if it may send to broadcast addresses.
    pub fn broadcast(&self) -> io::Result<bool> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().broadcast(),
            Socket::Simulated(socket) => Ok(socket.options().lock().broadcast),
        }
    }

    /// Sets how many routers a datagram may pass (`IP_TTL`).
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().set_ttl(ttl),
            Socket::Simulated(socket) => {
                socket.options().lock().ttl = ttl;
                Ok(())
            }
        }
    }

    /// Returns how many routers a datagram may pass.
    pub fn ttl(&self) -> io::Result<u32> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().ttl(),
            Socket::Simulated(socket) => Ok(socket.options().lock().ttl),
        }
    }

    /// The error that the socket keeps for the next operation, which then does not see it
    /// (`SO_ERROR`).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().take_error(),
            Socket::Simulated(_) => Ok(None),
        }
    }

    /// Receives what is sent to a group, too, on the interface with this address (unspecified: the
    /// system chooses).
    ///
    /// # Errors
    /// `Unsupported` in a simulation, which has no groups.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.0.real()?.join_multicast_v4(&group, &interface)
    }

    /// Takes a [`join_multicast_v4`](UdpSocket::join_multicast_v4) back.
    ///
    /// # Errors
    /// `Unsupported` in a simulation, which has no groups.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.0.real()?.leave_multicast_v4(&group, &interface)
    }

    /// Receives what is sent to a group, too, on the interface with this number (0: the system
    /// chooses).
    ///
    /// # Errors
    /// `Unsupported` in a simulation, which has no groups.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.0.real()?.join_multicast_v6(group, interface)
    }

    /// Takes a [`join_multicast_v6`](UdpSocket::join_multicast_v6) back.
    ///
    /// # Errors
    /// `Unsupported` in a simulation, which has no groups.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.0.real()?.leave_multicast_v6(group, interface)
    }

    real_options! {
        /// Sets whether this host receives what it sends to a group (`IP_MULTICAST_LOOP`).
        set_multicast_loop_v4, multicast_loop_v4: bool = set_multicast_loop_v4, multicast_loop_v4;
        /// Sets how many routers a datagram to a group may pass (`IP_MULTICAST_TTL`).
        set_multicast_ttl_v4, multicast_ttl_v4: u32 = set_multicast_ttl_v4, multicast_ttl_v4;
        /// Sets whether this host receives what it sends to a group (`IPV6_MULTICAST_LOOP`).
        set_multicast_loop_v6, multicast_loop_v6: bool = set_multicast_loop_v6, multicast_loop_v6;
        /// Sets the type of service of datagrams (`IP_TOS`).
        set_tos_v4, tos_v4: u32 = set_tos_v4, tos_v4;
        /// Sets the traffic class of datagrams (`IPV6_TCLASS`).
        set_tclass_v6, tclass_v6: u32 = set_tclass_v6, tclass_v6;
    }

    /// Returns the network interface that the socket is bound to (`SO_BINDTODEVICE`).
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    pub fn device(&self) -> io::Result<Option<Vec<u8>>> {
        SockRef::from(self.0.real()?).device()
    }

    /// Binds the socket to a network interface, or to none again (`SO_BINDTODEVICE`).
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    pub fn bind_device(&self, interface: Option<&[u8]>) -> io::Result<()> {
        SockRef::from(self.0.real()?).bind_device(interface)
    }

    fn send_to_now(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().send_to(bytes, to),
            Socket::Simulated(socket) => socket.send_to(bytes, to),
        }
    }

    fn receive_from_now(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match &self.0 {
            Socket::Real(socket) => socket.socket().recv_from(buffer),
            Socket::Simulated(socket) => with_address(socket.receive(buffer, false)?),
        }
    }
}

from_std!(std::net::UdpSocket => UdpSocket);

fn with_address<T>((value, name): (T, Name)) -> io::Result<(T, SocketAddr)> {
    match name {
        Name::Socket(address) => Ok((value, address)),
        Name::Path { .. } | Name::Unnamed => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

crate::net::readiness::descriptor!(UdpSocket, |this| this.0.real().ok());

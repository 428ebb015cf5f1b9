//! TCP connections.

use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use windlass_core::sync::Arc;

use super::address_of;
use super::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use crate::io::ReadBuf;
use crate::net::address::ToSocketAddrs;
use crate::net::dns::resolve;
use crate::net::from_std::from_std;
use crate::net::readiness::readiness_methods;
use crate::net::simulated::{self, Network};
use crate::net::split;
use crate::net::stream::{
    AsStream, Kind, Stream, System, reading_methods, stream_traits, writing_methods,
};
use windlass_runtime::Handle;
use windlass_runtime::driver::Reality;
use windlass_runtime::driver::{Direction, IoDriver, Registered, unsupported};
use windlass_sync::limit::{Cut, Limit};

/// A TCP connection. See [`TcpListener`](crate::net::TcpListener) for an example.
///
/// Dropping it closes both directions. If bytes that arrived were not read, the other side sees a
/// reset in place of the end.
#[derive(Debug)]
pub struct TcpStream(Stream);

impl TcpStream {
    pub(super) fn new(stream: Stream) -> TcpStream {
        TcpStream(stream)
    }

    /// Connects to `address`; of several that a name stands for, to the first that answers.
    /// Dropping the wait gives the attempt up.
    ///
    /// # Errors
    /// `ConnectionRefused` if no socket listens there; else those of the last address that was
    /// tried.
    pub async fn connect(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
        let handle = Handle::current_or_default();
        let addresses = resolve(&address, &handle).await?;
        let mut last = None;
        for address in addresses {
            let connected = match handle.reality() {
                Reality::Real(driver) => connect_to(driver, address).await,
                Reality::Simulated(simulator) => {
                    let connected = Network::of(simulator).connect(address).await;
                    connected.map(|stream| Stream(Kind::Simulated(stream)))
                }
            };
            match connected {
                Ok(stream) => return Ok(TcpStream(stream)),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// Connects as `connect` does, within a limit: a duration, an instant, a token.
    ///
    /// # Errors
    /// `TimedOut` after the deadline, `ConnectionAborted` when the token was cancelled; else those
    /// of `connect`.
    pub async fn connect_within(
        address: impl ToSocketAddrs,
        limit: impl Into<Limit<'_>>,
    ) -> io::Result<TcpStream> {
        let connecting = pin!(TcpStream::connect(address));
        match limit.into().apply(connecting).await {
            Ok(connected) => connected,
            Err(Cut::TimedOut) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "no answer within the limit: allow more time, or try another address",
            )),
            Err(Cut::Cancelled) => Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the token was cancelled before there was an answer",
            )),
        }
    }

    /// Takes over a stream of the standard library, on the runtime this is called in.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<TcpStream> {
        stream.set_nonblocking(true)?;
        let socket = mio::net::TcpStream::from_std(stream);
        Ok(TcpStream(Stream(Kind::Tcp(Registered::here(socket)?))))
    }

    /// Takes the stream out of the runtime. It is in non-blocking mode: call
    /// `set_nonblocking(false)` to wait in its methods.
    ///
    /// # Errors
    /// `Unsupported` in a simulation.
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        match self.0.0 {
            Kind::Tcp(registered) => Ok(registered.into_socket().into()),
            Kind::Unix(_) | Kind::Simulated(_) => Err(unsupported(NOT_REAL)),
        }
    }

    reading_methods!();
    writing_methods!();
    readiness_methods!(poll_read_ready, poll_write_ready, |this| this.0.source());

    /// Reads as `read` does, but the bytes stay there for the next read. Cancel-safe.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let source = self.0.source();
        source.io(Direction::Read, || self.peek_now(buffer)).await
    }

    /// Polls for what `peek` awaits, into the part of `buf` that is not filled; gives how many
    /// bytes that were. The last task that polled is woken.
    pub fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        self.0.source().poll_io(Direction::Read, cx, || {
            let count = self.peek_now(buf.initialize_unfilled())?;
            buf.advance(count);
            Ok(count)
        })
    }

    fn peek_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.0.0 {
            Kind::Tcp(registered) => registered.socket().peek(buffer),
            Kind::Simulated(stream) => stream.peek(buffer),
            Kind::Unix(_) => Err(unsupported(NOT_REAL)),
        }
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

    /// Returns this end's address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0.0 {
            Kind::Tcp(registered) => registered.socket().local_addr(),
            Kind::Simulated(stream) => address_of(stream.local()),
            Kind::Unix(_) => Err(unsupported(NOT_REAL)),
        }
    }

    /// The other end's address.
    ///
    /// # Errors
    /// `NotConnected` after the connection was reset.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.0.0 {
            Kind::Tcp(registered) => registered.socket().peer_addr(),
            Kind::Simulated(stream) => address_of(stream.peer()),
            Kind::Unix(_) => Err(unsupported(NOT_REAL)),
        }
    }

    /// Sends small writes at once instead of collecting them (`TCP_NODELAY`).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set(
            |socket| socket.set_tcp_nodelay(nodelay),
            |options| options.nodelay = nodelay,
        )
    }

    /// True if small writes are sent at once.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.get(|socket| socket.tcp_nodelay(), |options| options.nodelay)
    }

    /// Asks the other end for a sign of life after so much silence; none: never (`SO_KEEPALIVE`).
    pub fn set_keepalive(&self, after: Option<Duration>) -> io::Result<()> {
        self.set(
            |socket| match after {
                Some(after) => socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(after)),
                None => socket.set_keepalive(false),
            },
            |options| options.keepalive = after,
        )
    }

    /// After how much silence the other end is asked for a sign of life; none: never.
    pub fn keepalive(&self) -> io::Result<Option<Duration>> {
        self.get(
            |socket| match socket.keepalive()? {
                true => socket.tcp_keepalive_time().map(Some),
                false => Ok(None),
            },
            |options| options.keepalive,
        )
    }

    /// What a drop does with bytes that were not sent yet (`SO_LINGER`): zero discards them and
    /// resets the connection; none, the default, sends them in the background. Anything else makes
    /// the drop block its worker for up to so long: better wait for the other side's end with a
    /// read.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        self.set(
            |socket| socket.set_linger(linger),
            |options| options.linger = linger,
        )
    }

    /// What a drop does with bytes that were not sent yet; see
    /// [`set_linger`](TcpStream::set_linger).
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.get(|socket| socket.linger(), |options| options.linger)
    }

    /// Sets whether received bytes are acknowledged at once (`TCP_QUICKACK`); the system may change
    /// it back. In a simulation it has no effect.
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.set(|socket| socket.set_tcp_quickack(quickack), |_| {})
    }

    /// Returns whether received bytes are acknowledged at once.
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
    pub fn quickack(&self) -> io::Result<bool> {
        self.get(|socket| socket.tcp_quickack(), |_| false)
    }

    /// Makes a drop discard bytes that were not sent yet and reset the connection (`SO_LINGER` of
    /// zero); it does not block.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Sets how many routers a packet may pass (`IP_TTL`).
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.set(|socket| socket.set_ttl_v4(ttl), |options| options.ttl = ttl)
    }

    /// Returns how many routers a packet may pass.
    pub fn ttl(&self) -> io::Result<u32> {
        self.get(|socket| socket.ttl_v4(), |options| options.ttl)
    }

    /// The error that the socket keeps for the next operation, which then does not see it
    /// (`SO_ERROR`).
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.get(|socket| socket.take_error(), |_| None)
    }

    fn set(
        &self,
        real: impl FnOnce(&SockRef<'_>) -> io::Result<()>,
        simulated: impl FnOnce(&mut simulated::Options),
    ) -> io::Result<()> {
        match self.0.system() {
            System::Real(socket) => real(&socket),
            System::Simulated(stream) => {
                simulated(&mut stream.options().lock());
                Ok(())
            }
        }
    }

    fn get<T>(
        &self,
        real: impl FnOnce(&SockRef<'_>) -> io::Result<T>,
        simulated: impl FnOnce(&simulated::Options) -> T,
    ) -> io::Result<T> {
        match self.0.system() {
            System::Real(socket) => real(&socket),
            System::Simulated(stream) => Ok(simulated(&stream.options().lock())),
        }
    }
}

const NOT_REAL: &str =
    "this is no TCP socket of the operating system: it exists in a simulation only";

async fn connect_to(driver: &Arc<IoDriver>, address: SocketAddr) -> io::Result<Stream> {
    connected(driver, mio::net::TcpStream::connect(address)?).await
}

/// Waits until a socket that connects has done so.
pub(super) async fn connected(
    driver: &Arc<IoDriver>,
    socket: mio::net::TcpStream,
) -> io::Result<Stream> {
    let socket = Registered::new(driver, socket)?;
    poll_fn(|cx| {
        socket.source().poll_io(Direction::Write, cx, || {
            if let Some(error) = socket.socket().take_error()? {
                return Err(error);
            }
            match socket.socket().peer_addr() {
                Ok(_) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    Err(io::ErrorKind::WouldBlock.into())
                }
                Err(error) => Err(error),
            }
        })
    })
    .await?;
    Ok(Stream(Kind::Tcp(socket)))
}

from_std!(std::net::TcpStream => TcpStream);

stream_traits!(TcpStream);

crate::net::readiness::descriptor!(TcpStream, |this| match &this.0.0 {
    Kind::Tcp(registered) => Some(registered.socket()),
    Kind::Unix(_) | Kind::Simulated(_) => None,
});

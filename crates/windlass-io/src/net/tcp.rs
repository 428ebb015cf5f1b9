//! TCP: listeners and streams.

use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use windlass_core::sync::Arc;

use super::address::ToAddress;
use super::dns::{first_of, resolve};
use super::simulated::{self, Name};
use super::split::{self, OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use super::stream::{
    AsStream, Kind, Stream, System, futures_read, futures_write, reading_methods, writing_methods,
};
use crate::net::simulated::Network;
use windlass_runtime::Handle;
use windlass_runtime::driver::Reality;
use windlass_runtime::driver::{Direction, IoDriver, Registered, Source, unsupported};
use windlass_sync::limit::{Cut, Limit};

/// Connections that the kernel keeps until they are accepted; what tokio asks for.
const BACKLOG: i32 = 1024;

/// Accepts TCP connections.
///
/// ```
/// use windlass_runtime::Runtime;
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
///     client.shutdown_write()?;
///     let mut answer = Vec::new();
///     client.read_to_end(&mut answer).await?;
///     assert_eq!(answer, b"desserts");
///     server.await.expect("it does not panic")
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TcpListener(Listener);

#[derive(Debug)]
enum Listener {
    Real(Registered<mio::net::TcpListener>),
    Simulated(simulated::Listener),
}

impl TcpListener {
    /// Listens on `address`; port 0 takes a free one. Of several that a name stands for, on the
    /// first that will do. A port whose last connections are still closing can be bound again.
    ///
    /// # Errors
    /// `AddrInUse` if a socket listens there: end that, or take another port.
    pub async fn bind(address: impl ToAddress) -> io::Result<TcpListener> {
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
        let accepted = self.source().io(Direction::Read, || self.accept_now());
        accepted.await
    }

    /// Polls for what `accept` awaits: the last task that polled is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.source()
            .poll_io(Direction::Read, cx, || self.accept_now())
    }

    /// The connections as they come, as a stream that never ends. Errors are items, as those of
    /// `accept`.
    pub fn incoming(&self) -> TcpIncoming<'_> {
        TcpIncoming(self)
    }

    /// Returns the address that the listener is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Listener::Real(listener) => listener.socket().local_addr(),
            Listener::Simulated(listener) => address_of(listener.name()),
        }
    }

    fn source(&self) -> &Source {
        match &self.0 {
            Listener::Real(listener) => listener.source(),
            Listener::Simulated(listener) => listener.source(),
        }
    }

    fn accept_now(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.0 {
            Listener::Real(listener) => {
                let (socket, from) = listener.socket().accept()?;
                let stream = Stream(Kind::Tcp(Registered::new(listener.driver(), socket)?));
                Ok((TcpStream(stream), from))
            }
            Listener::Simulated(listener) => {
                let stream = listener.accept()?;
                let from = address_of(stream.peer())?;
                Ok((TcpStream(Stream(Kind::Simulated(stream))), from))
            }
        }
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

fn address_of(name: &Name) -> io::Result<SocketAddr> {
    match name {
        Name::Socket(address) => Ok(*address),
        Name::Path { .. } | Name::Unnamed => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

/// A TCP connection. See [`TcpListener`] for an example.
///
/// Dropping it closes both directions. If bytes that arrived were not read, the other side sees a
/// reset in place of the end.
#[derive(Debug)]
pub struct TcpStream(Stream);

impl TcpStream {
    /// Connects to `address`; of several that a name stands for, to the first that answers.
    /// Dropping the wait gives the attempt up.
    ///
    /// # Errors
    /// `ConnectionRefused` if no socket listens there; else those of the last address that was
    /// tried.
    pub async fn connect(address: impl ToAddress) -> io::Result<TcpStream> {
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
        address: impl ToAddress,
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

    /// Reads as `read` does, but the bytes stay there for the next read. Cancel-safe.
    pub async fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let peeked = self.0.source().io(Direction::Read, || match &self.0.0 {
            Kind::Tcp(registered) => registered.socket().peek(buffer),
            Kind::Simulated(stream) => stream.peek(buffer),
            Kind::Unix(_) => Err(unsupported(NOT_REAL)),
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
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
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
    let socket = Registered::new(driver, mio::net::TcpStream::connect(address)?)?;
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

impl AsStream for TcpStream {
    fn as_stream(&self) -> &Stream {
        &self.0
    }
}

impl AsStream for &TcpStream {
    fn as_stream(&self) -> &Stream {
        &self.0
    }
}

futures_read!([] TcpStream);
futures_write!([] TcpStream);
futures_read!([] & TcpStream);
futures_write!([] & TcpStream);

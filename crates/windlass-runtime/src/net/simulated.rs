//! The simulated network: named hosts, connections with latency, partitions, broken connections.
//!
//! Everything is behind one lock, which only the simulation's thread takes. What happens later is in
//! a queue ordered by time and number, so that it happens in the same order every time. A link that
//! is cut holds back what was sent, as TCP would, until it is healed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use windlass_core::sync::{Arc, Mutex, World};
use windlass_core::task::spend;

use super::Address;

/// Bytes that a direction of a connection holds before a writer waits.
const WINDOW: usize = 64 * 1024;
/// Connections that wait to be accepted; the next one is refused.
const BACKLOG: usize = 128;
/// Where code runs that was not put on a host.
const LOCALHOST: &str = "localhost";
const FIRST_FREE_PORT: u16 = 49_152;

/// The network of one simulation.
#[derive(Debug)]
pub(crate) struct Network {
    world: Arc<World>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// In the order in which they were first named, which is their number.
    hosts: Vec<String>,
    next_port: u16,
    latency: RangeInclusive<Duration>,
    /// Pairs that cannot reach each other, the lower number first.
    cut: BTreeSet<(usize, usize)>,
    listeners: BTreeMap<SocketAddr, Backlog>,
    pipes: Vec<Pipe>,
    /// What happens when, and in which order.
    queue: BTreeMap<(u64, u64), Event>,
    events: u64,
}

#[derive(Debug, Default)]
struct Backlog {
    waiting: VecDeque<(End, SocketAddr)>,
    /// Several tasks may accept.
    wakers: Vec<Waker>,
}

#[derive(Debug)]
enum Event {
    /// A request to connect arrives.
    Knock {
        from: End,
        to: SocketAddr,
        peer: SocketAddr,
    },
    /// The answer to it arrives.
    Answer { pipe: usize, accepted: bool },
    /// Bytes arrive at the reader of a pipe; none: its end.
    Bytes { pipe: usize, bytes: Vec<u8> },
}

/// One direction of a connection.
#[derive(Debug)]
struct Pipe {
    from: usize,
    to: usize,
    arrived: VecDeque<u8>,
    /// Sent and not yet read.
    outstanding: usize,
    /// Nothing overtakes: not before what was sent last.
    last_arrival: u64,
    /// Sent while the link was cut.
    held: Vec<Vec<u8>>,
    open: Open,
    ended: bool,
    reset: bool,
    /// The reader or the writer has gone.
    abandoned: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Asked,
    Yes,
    Refused,
}

/// One end of a connection: the pipe it reads and the one it writes.
#[derive(Debug, Clone, Copy)]
struct End {
    reads: usize,
    writes: usize,
}

thread_local! {
    static HOST: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn current_host() -> String {
    HOST.with(|host| host.borrow().clone())
        .unwrap_or_else(|| LOCALHOST.to_owned())
}

impl Network {
    pub(crate) fn new(world: Arc<World>) -> Arc<Network> {
        Arc::new(Network {
            world,
            state: Mutex::new(State {
                hosts: vec![LOCALHOST.to_owned()],
                next_port: FIRST_FREE_PORT,
                latency: Duration::from_micros(100)..=Duration::from_millis(1),
                cut: BTreeSet::new(),
                listeners: BTreeMap::new(),
                pipes: Vec::new(),
                queue: BTreeMap::new(),
                events: 0,
            }),
        })
    }

    pub(crate) fn next(&self) -> Option<u64> {
        let state = self.state.lock();
        state.queue.first_key_value().map(|((at, _), _)| *at)
    }

    /// Everything that is due happens.
    pub(crate) fn happen(&self, now: u64) {
        loop {
            let mut state = self.state.lock();
            let Some(entry) = state
                .queue
                .first_entry()
                .filter(|entry| entry.key().0 <= now)
            else {
                return;
            };
            let event = entry.remove();
            let woken = state.handle(event, &self.world);
            drop(state);
            woken.into_iter().for_each(Waker::wake);
        }
    }

    pub(super) fn bind(self: &Arc<Self>, address: &Address) -> io::Result<Listener> {
        let mut state = self.state.lock();
        let host = match address {
            Address::Name { host, .. } if host != LOCALHOST && *host != current_host() => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrNotAvailable,
                    format!(
                        "{host} is another host than {}, where this runs",
                        current_host()
                    ),
                ));
            }
            _ => state.host(&current_host()),
        };
        let port = match address.port() {
            0 => state.free_port(),
            port => port,
        };
        let address = address_of(host, port);
        if state.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        state.listeners.insert(address, Backlog::default());
        Ok(Listener {
            network: self.clone(),
            address,
        })
    }

    pub(super) async fn connect(self: &Arc<Self>, address: &Address) -> io::Result<Stream> {
        let stream = self.knock(address)?;
        let pipe = stream.end.reads;
        poll_fn(|cx| {
            let mut state = self.state.lock();
            match state.pipes[pipe].open {
                Open::Asked => {
                    state.pipes[pipe].reader = Some(cx.waker().clone());
                    Poll::Pending
                }
                Open::Yes => Poll::Ready(Ok(())),
                Open::Refused => Poll::Ready(Err(io::ErrorKind::ConnectionRefused.into())),
            }
        })
        .await
        .map(|()| stream)
    }

    /// Sends a request to connect.
    fn knock(self: &Arc<Self>, address: &Address) -> io::Result<Stream> {
        let mut state = self.state.lock();
        let here = state.host(&current_host());
        let there = match address {
            Address::Name { host, port } if host == LOCALHOST => address_of(here, *port),
            Address::Name { host, port } => {
                let Some(number) = state.hosts.iter().position(|known| known == host) else {
                    return Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        format!("there is no host {host:?} in this simulation"),
                    ));
                };
                address_of(number, *port)
            }
            Address::Socket(address) if address.ip().is_loopback() => {
                address_of(here, address.port())
            }
            Address::Socket(address) => *address,
        };
        let host = host_of(there).filter(|host| *host < state.hosts.len());
        let Some(host) = host else {
            return Err(io::ErrorKind::HostUnreachable.into());
        };
        let peer = address_of(here, state.free_port());
        let reads = state.add_pipe(host, here);
        let writes = state.add_pipe(here, host);
        let end = End { reads, writes };
        let knock = Event::Knock {
            from: end,
            to: there,
            peer,
        };
        state.send(writes, knock, &self.world);
        Ok(Stream {
            network: self.clone(),
            end,
            local: peer,
            peer: there,
        })
    }
}

fn address_of(host: usize, port: u16) -> SocketAddr {
    let [_, _, high, low] = (host as u32).to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, high, low)), port)
}

fn host_of(address: SocketAddr) -> Option<usize> {
    match address.ip() {
        IpAddr::V4(ip) => match ip.octets() {
            [10, 0, high, low] => Some(usize::from(u16::from_be_bytes([high, low]))),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

impl State {
    /// A host's number; a new name gets the next one.
    fn host(&mut self, name: &str) -> usize {
        if let Some(number) = self.hosts.iter().position(|known| known == name) {
            return number;
        }
        self.hosts.push(name.to_owned());
        self.hosts.len() - 1
    }

    fn free_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(FIRST_FREE_PORT);
        port
    }

    fn add_pipe(&mut self, from: usize, to: usize) -> usize {
        self.pipes.push(Pipe {
            from,
            to,
            arrived: VecDeque::new(),
            outstanding: 0,
            last_arrival: 0,
            held: Vec::new(),
            open: Open::Asked,
            ended: false,
            reset: false,
            abandoned: false,
            reader: None,
            writer: None,
        });
        self.pipes.len() - 1
    }

    fn is_cut(&self, a: usize, b: usize) -> bool {
        self.cut.contains(&(a.min(b), a.max(b)))
    }

    /// Puts an event on its way through a pipe; it arrives after everything sent before it.
    fn send(&mut self, pipe: usize, event: Event, world: &World) {
        let (least, most) = (self.latency.start(), self.latency.end());
        let spread = most.saturating_sub(*least).as_nanos() as usize;
        let extra = world.below(spread.saturating_add(1)) as u64;
        let there = &mut self.pipes[pipe];
        let local = there.from == there.to;
        let takes = if local {
            0
        } else {
            least.as_nanos() as u64 + extra
        };
        let at = world.now().saturating_add(takes).max(there.last_arrival);
        there.last_arrival = at;
        self.events += 1;
        self.queue.insert((at, self.events), event);
    }

    fn send_bytes(&mut self, pipe: usize, bytes: Vec<u8>, world: &World) {
        let there = &mut self.pipes[pipe];
        let (from, to) = (there.from, there.to);
        there.outstanding += bytes.len();
        if self.is_cut(from, to) || !self.pipes[pipe].held.is_empty() {
            return self.pipes[pipe].held.push(bytes);
        }
        self.send(pipe, Event::Bytes { pipe, bytes }, world);
    }

    /// An event happens; gives who is to be woken.
    fn handle(&mut self, event: Event, world: &World) -> Vec<Waker> {
        match event {
            Event::Knock { from, to, peer } => self.knocked(from, to, peer, world),
            Event::Answer { pipe, accepted } => {
                let there = &mut self.pipes[pipe];
                there.open = if accepted { Open::Yes } else { Open::Refused };
                there.reader.take().into_iter().collect()
            }
            Event::Bytes { pipe, bytes } => {
                let (from, to) = (self.pipes[pipe].from, self.pipes[pipe].to);
                if self.is_cut(from, to) {
                    // It was on its way when the link was cut: sent again once that is healed.
                    self.pipes[pipe].held.push(bytes);
                    return Vec::new();
                }
                let there = &mut self.pipes[pipe];
                if there.reset {
                    // It was on its way when the connection broke.
                    return Vec::new();
                }
                if bytes.is_empty() {
                    there.ended = true;
                } else {
                    there.arrived.extend(bytes);
                }
                there.reader.take().into_iter().collect()
            }
        }
    }

    fn knocked(
        &mut self,
        from: End,
        to: SocketAddr,
        peer: SocketAddr,
        world: &World,
    ) -> Vec<Waker> {
        let (here, there) = (self.pipes[from.writes].from, self.pipes[from.writes].to);
        if self.is_cut(here, there) {
            // Asked again until somebody answers, or the asker gives up.
            self.events += 1;
            let later = world.now() + Duration::from_secs(1).as_nanos() as u64;
            if !self.pipes[from.reads].abandoned {
                self.queue
                    .insert((later, self.events), Event::Knock { from, to, peer });
            }
            return Vec::new();
        }
        let other = End {
            reads: from.writes,
            writes: from.reads,
        };
        let mut woken = Vec::new();
        let accepted = match self.listeners.get_mut(&to) {
            Some(backlog) if backlog.waiting.len() < BACKLOG => {
                backlog.waiting.push_back((other, peer));
                woken = std::mem::take(&mut backlog.wakers);
                true
            }
            _ => false,
        };
        self.pipes[from.writes].open = Open::Yes;
        let answer = Event::Answer {
            pipe: from.reads,
            accepted,
        };
        self.send(from.reads, answer, world);
        woken
    }

    /// Both ends of every connection between two hosts are told that it is broken.
    fn reset_between(&mut self, a: usize, b: usize) -> Vec<Waker> {
        let mut woken = Vec::new();
        for pipe in &mut self.pipes {
            if (pipe.from, pipe.to) == (a, b) || (pipe.from, pipe.to) == (b, a) {
                pipe.reset = true;
                pipe.held.clear();
                woken.extend(pipe.reader.take());
                woken.extend(pipe.writer.take());
            }
        }
        woken
    }

    fn heal(&mut self, a: usize, b: usize, world: &World) {
        self.cut.remove(&(a.min(b), a.max(b)));
        for pipe in 0..self.pipes.len() {
            let there = &mut self.pipes[pipe];
            if (there.from, there.to) == (a, b) || (there.from, there.to) == (b, a) {
                for bytes in std::mem::take(&mut there.held) {
                    self.send(pipe, Event::Bytes { pipe, bytes }, world);
                }
            }
        }
    }
}

/// A listener in the simulated network.
#[derive(Debug)]
pub(super) struct Listener {
    network: Arc<Network>,
    address: SocketAddr,
}

impl Listener {
    pub(super) fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(Stream, SocketAddr)>> {
        let spent = ready!(spend(cx));
        let mut state = self.network.state.lock();
        let Some(backlog) = state.listeners.get_mut(&self.address) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let Some((end, peer)) = backlog.waiting.pop_front() else {
            if !backlog.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                backlog.wakers.push(cx.waker().clone());
            }
            return Poll::Pending;
        };
        drop(state);
        spent.made_progress();
        let stream = Stream {
            network: self.network.clone(),
            end,
            local: self.address,
            peer,
        };
        Poll::Ready(Ok((stream, peer)))
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.network.state.lock();
        let backlog = state.listeners.remove(&self.address).unwrap_or_default();
        let mut woken = Vec::new();
        for (end, _) in &backlog.waiting {
            // Nobody will ever accept them.
            for pipe in [end.reads, end.writes] {
                state.pipes[pipe].reset = true;
                woken.extend(state.pipes[pipe].reader.take());
                woken.extend(state.pipes[pipe].writer.take());
            }
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// A connection in the simulated network.
#[derive(Debug)]
pub(super) struct Stream {
    network: Arc<Network>,
    end: End,
    local: SocketAddr,
    peer: SocketAddr,
}

impl Stream {
    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let spent = ready!(spend(cx));
        let mut state = self.network.state.lock();
        let pipe = &mut state.pipes[self.end.reads];
        if pipe.arrived.is_empty() {
            if pipe.reset {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            if pipe.ended || buffer.is_empty() {
                return Poll::Ready(Ok(0));
            }
            pipe.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = buffer.len().min(pipe.arrived.len());
        for (place, byte) in buffer.iter_mut().zip(pipe.arrived.drain(..count)) {
            *place = byte;
        }
        pipe.outstanding -= count;
        let writer = pipe.writer.take();
        drop(state);
        spent.made_progress();
        if let Some(writer) = writer {
            writer.wake();
        }
        Poll::Ready(Ok(count))
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let spent = ready!(spend(cx));
        let mut state = self.network.state.lock();
        let pipe = &mut state.pipes[self.end.writes];
        if pipe.reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if pipe.abandoned || pipe.ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = WINDOW.saturating_sub(pipe.outstanding);
        if room == 0 && !bytes.is_empty() {
            pipe.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = room.min(bytes.len());
        if count > 0 {
            state.send_bytes(
                self.end.writes,
                bytes[..count].to_vec(),
                &self.network.world,
            );
        }
        spent.made_progress();
        Poll::Ready(Ok(count))
    }

    pub(super) fn shutdown_write(&self) -> io::Result<()> {
        let mut state = self.network.state.lock();
        if !state.pipes[self.end.writes].reset {
            state.send_bytes(self.end.writes, Vec::new(), &self.network.world);
        }
        Ok(())
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(super) fn peer_addr(&self) -> SocketAddr {
        self.peer
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.network.state.lock();
        if !state.pipes[self.end.writes].reset {
            state.send_bytes(self.end.writes, Vec::new(), &self.network.world);
        }
        let reads = &mut state.pipes[self.end.reads];
        reads.abandoned = true;
        let writer = reads.writer.take();
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}

/// The network between the hosts of a simulation: where code runs, how long messages take, and what
/// is cut.
///
/// ```
/// use std::time::Duration;
/// use windlass_runtime::{Runtime, net::{TcpListener, TcpStream}, simulator::Net, time};
///
/// Runtime::simulated(1).block_on(async {
///     let net = Net::current();
///     net.latency(Duration::from_millis(10)..=Duration::from_millis(10));
///     let server = net.on("server", async {
///         let listener = TcpListener::bind("server:80").await?;
///         let (mut stream, _) = listener.accept().await?;
///         stream.write_all(b"hi").await
///     });
///     let server = windlass_runtime::spawn(server);
///     windlass_runtime::task::yield_now().await;
///
///     let began = time::Instant::now();
///     let client = net.on("client", async {
///         let mut stream = loop {
///             match TcpStream::connect("server:80").await {
///                 Ok(stream) => break stream,
///                 Err(_) => time::sleep(Duration::from_millis(1)).await,
///             }
///         };
///         let mut hi = [0; 2];
///         stream.read_exact(&mut hi).await
///     });
///     client.await.unwrap();
///     assert!(began.elapsed() >= Duration::from_millis(20), "a round trip");
///     server.await.unwrap().unwrap();
/// });
/// ```
#[derive(Debug, Clone)]
pub struct Net(Arc<Network>);

impl Net {
    /// The network of the simulation this runs in.
    ///
    /// # Panics
    /// Outside of a simulation.
    #[track_caller]
    pub fn current() -> Net {
        let handle = crate::handle::Handle::current();
        match handle.shared().simulator() {
            Some(simulator) => Net(simulator.network().clone()),
            None => panic!("Net::current outside of a simulation: see Runtime::simulated"),
        }
    }

    /// Runs `future` on the host `name`: what it binds is there, and what it connects comes from
    /// there. Tasks that it spawns are on `localhost` unless they are put on a host, too.
    pub fn on<F: Future>(&self, name: &str, future: F) -> OnHost<F> {
        self.0.state.lock().host(name);
        OnHost {
            future,
            host: name.to_owned(),
        }
    }

    /// How long a message takes between two hosts: each one anything in the range. Order is kept
    /// within a connection. Within a host it takes no time.
    pub fn latency(&self, range: RangeInclusive<Duration>) {
        self.0.state.lock().latency = range;
    }

    /// Cuts the link between two hosts: what is sent waits, connections stay open and silent.
    pub fn partition(&self, a: &str, b: &str) {
        let mut state = self.0.state.lock();
        let (a, b) = (state.host(a), state.host(b));
        state.cut.insert((a.min(b), a.max(b)));
    }

    /// Restores the link between two hosts: what waited is sent.
    pub fn heal(&self, a: &str, b: &str) {
        let mut state = self.0.state.lock();
        let (a, b) = (state.host(a), state.host(b));
        state.heal(a, b, &self.0.world);
    }

    /// Breaks every connection between two hosts: both ends see a reset, what was on its way is
    /// lost.
    pub fn break_connections(&self, a: &str, b: &str) {
        let mut state = self.0.state.lock();
        let (a, b) = (state.host(a), state.host(b));
        let woken = state.reset_between(a, b);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }
}

pin_project! {
    /// The future of [`Net::on`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct OnHost<F> {
        #[pin]
        future: F,
        host: String,
    }
}

impl<F: Future> Future for OnHost<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        struct Leave(Option<String>);
        impl Drop for Leave {
            fn drop(&mut self) {
                HOST.with(|host| host.replace(self.0.take()));
            }
        }
        let this = self.project();
        let before = HOST.with(|host| host.replace(Some(this.host.clone())));
        let _leave = Leave(before);
        this.future.poll(cx)
    }
}

impl<F> std::fmt::Debug for OnHost<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnHost")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

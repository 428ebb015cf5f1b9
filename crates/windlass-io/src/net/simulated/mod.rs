//! The simulated network: named hosts, connections and datagrams with latency, partitions, losses.
//!
//! Everything is behind one lock, which only the simulation's thread takes. What happens later is
//! in a queue ordered by time and number, so that it happens in the same order every time. Sockets
//! are as those of the kernel: their operations never wait, and a `Source` per socket tells when to
//! try again. Readiness is set outside of the lock, because that wakes tasks.

mod datagram;
mod host;
mod options;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use windlass_core::sync::{Arc, Mutex, World, with_world};

pub(in crate::net) use self::datagram::Datagrams;
pub use self::datagram::DroppedDatagrams;
use self::datagram::Mailbox;
pub use self::host::{Net, OnHost};
pub(in crate::net) use self::options::Options;
use self::stream::{Backlog, End, Pipe};
pub(in crate::net) use self::stream::{Listener, Stream};
use super::Address;
use windlass_runtime::driver::{Direction, Source};
use windlass_runtime::simulator::{Part, Simulator};

/// Where code runs that was not put on a host.
const LOCALHOST: &str = "localhost";
const FREE_PORTS: RangeInclusive<u16> = 49_152..=u16::MAX;

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
    /// How likely it is that a datagram between two hosts is lost, from 0 to 1.
    loss: f64,
    /// Pairs that cannot reach each other, the lower number first.
    cut: BTreeSet<(usize, usize)>,
    listeners: BTreeMap<Name, Backlog>,
    pipes: BTreeMap<u64, Pipe>,
    mailboxes: BTreeMap<u64, Mailbox>,
    /// Which mailbox has which name.
    bound: BTreeMap<Name, u64>,
    dropped: DroppedDatagrams,
    /// What happens when, and in which order.
    queue: BTreeMap<(u64, u64), Event>,
    /// The last number that an event, a pipe or a mailbox was given.
    numbers: u64,
}

/// Where a socket is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::net) enum Name {
    /// A host and a port.
    Socket(SocketAddr),
    /// A path, of which each host has its own.
    Path { host: usize, path: PathBuf },
    /// Nowhere: one of a pair, or never bound.
    Unnamed,
}

#[derive(Debug)]
enum Event {
    /// A request to connect arrives.
    Knock { from: End, to: Name, peer: Name },
    /// The answer to it arrives.
    Answer { pipe: u64, accepted: bool },
    /// Bytes arrive at the reader of a pipe; none: its end.
    Bytes { pipe: u64, bytes: Vec<u8> },
    /// A datagram arrives.
    Datagram {
        from: SocketAddr,
        to: SocketAddr,
        bytes: Vec<u8>,
    },
}

/// Whose readiness is to be set once the lock is free.
#[derive(Debug, Default)]
struct Wakes(Vec<(Arc<Source>, Direction)>);

impl Wakes {
    fn add(&mut self, source: Option<&Arc<Source>>, direction: Direction) {
        self.0
            .extend(source.map(|source| (source.clone(), direction)));
    }

    fn wake(self) {
        for (source, direction) in self.0 {
            source.set_ready(direction);
        }
    }
}

impl Part for Network {
    fn next(&self) -> Option<u64> {
        let state = self.state.lock();
        state.queue.first_key_value().map(|((at, _), _)| *at)
    }

    fn happen(&self, now: u64) {
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
            let mut wakes = Wakes::default();
            state.handle(event, &self.world, &mut wakes);
            drop(state);
            wakes.wake();
        }
    }
}

impl Network {
    /// Returns the network of a simulation.
    pub(crate) fn of(simulator: &Simulator) -> Arc<Network> {
        simulator.part(Network::new)
    }

    fn new(world: Arc<World>) -> Network {
        Network {
            world,
            state: Mutex::new(State {
                hosts: vec![LOCALHOST.to_owned()],
                next_port: *FREE_PORTS.start(),
                latency: Duration::from_micros(100)..=Duration::from_millis(1),
                loss: 0.0,
                cut: BTreeSet::new(),
                listeners: BTreeMap::new(),
                pipes: BTreeMap::new(),
                mailboxes: BTreeMap::new(),
                bound: BTreeMap::new(),
                dropped: DroppedDatagrams::default(),
                queue: BTreeMap::new(),
                numbers: 0,
            }),
        }
    }

    /// What a name or a number stands for, as seen from the host where this runs.
    pub(in crate::net) fn resolve(&self, address: &Address) -> io::Result<SocketAddr> {
        let state = self.state.lock();
        let here = state.here();
        match address {
            Address::Name { host, port } if host == LOCALHOST => Ok(address_of(here, *port)),
            Address::Name { host, port } => {
                match state.hosts.iter().position(|known| known == host) {
                    Some(number) => Ok(address_of(number, *port)),
                    None => Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        format!(
                            "there is no host {host:?} in this simulation: run something on it \
                             with Net::on first"
                        ),
                    )),
                }
            }
            Address::Socket(address)
                if address.ip().is_loopback() || address.ip().is_unspecified() =>
            {
                Ok(address_of(here, address.port()))
            }
            Address::Socket(address) => Ok(*address),
            // `dns::resolve` asks for each by itself.
            Address::Several(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Changes the state, then wakes the tasks that it concerns.
    fn change<R>(&self, change: impl FnOnce(&mut State, &mut Wakes) -> R) -> R {
        let mut wakes = Wakes::default();
        let mut state = self.state.lock();
        let result = change(&mut state, &mut wakes);
        drop(state);
        wakes.wake();
        result
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

    /// The host where this runs: the node in the simulated world is its number.
    fn here(&self) -> usize {
        with_world(|world| world.map_or(0, World::node))
    }

    /// The number of the host that has this address, if there is one.
    fn host_at(&self, address: SocketAddr) -> Option<usize> {
        host_of(address).filter(|host| *host < self.hosts.len())
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn is_taken(&self, name: &Name) -> bool {
        self.listeners.contains_key(name) || self.bound.contains_key(name)
    }

    /// A port that nothing is bound to.
    fn free_port(&mut self, host: usize) -> io::Result<u16> {
        for _ in FREE_PORTS {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(*FREE_PORTS.start());
            if !self.is_taken(&Name::Socket(address_of(host, port))) {
                return Ok(port);
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// The address to bind to: one of this host, with a port.
    fn own_address(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let here = self.here();
        if host_of(address) != Some(here) {
            let message = format!(
                "{address} is not an address of {}, where this runs",
                self.hosts[here]
            );
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, message));
        }
        Ok(match address.port() {
            0 => address_of(here, self.free_port(here)?),
            _ => address,
        })
    }

    fn is_cut(&self, a: usize, b: usize) -> bool {
        self.cut.contains(&(a.min(b), a.max(b)))
    }

    /// When something sent now arrives.
    fn arrival(&self, from: usize, to: usize, world: &World) -> u64 {
        let (least, most) = (self.latency.start(), self.latency.end());
        let spread = most.saturating_sub(*least).as_nanos() as usize;
        let extra = world.below(spread.saturating_add(1)) as u64;
        let takes = match from == to {
            true => 0,
            false => least.as_nanos() as u64 + extra,
        };
        world.now().saturating_add(takes)
    }

    /// Something will happen at `at`, after everything else that was planned for that moment.
    fn plan(&mut self, at: u64, event: Event) {
        let number = self.next_number();
        self.queue.insert((at, number), event);
    }

    /// An event happens.
    fn handle(&mut self, event: Event, world: &World, wakes: &mut Wakes) {
        match event {
            Event::Knock { from, to, peer } => self.knocked(from, to, peer, world, wakes),
            Event::Answer { pipe, accepted } => self.answered(pipe, accepted, wakes),
            Event::Bytes { pipe, bytes } => self.bytes_arrived(pipe, bytes, wakes),
            Event::Datagram { from, to, bytes } => self.datagram_arrived(from, to, bytes, wakes),
        }
    }
}

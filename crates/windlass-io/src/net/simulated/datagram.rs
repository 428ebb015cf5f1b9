//! Datagrams of the simulated network: a mailbox per socket.
//!
//! Between ports they are as UDP: each takes its own time and may overtake others, and is dropped,
//! counted, when it cannot be delivered. Between paths they are as the kernel's: delivered at once,
//! and a sender waits while the receiver's mailbox is full.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use windlass_core::sync::{Arc, Mutex, World};

use super::{Event, Name, Network, Options, State, Wakes};
use windlass_runtime::driver::{Direction, Source};

/// Datagrams that a socket holds for its receiver.
const MAILBOX: usize = 256;
/// What fits into a datagram over IPv4.
const LARGEST: usize = 65_507;
/// The dice decide on losses to a millionth.
const MILLION: usize = 1_000_000;

/// Datagrams between ports that a simulation dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedDatagrams {
    /// Lost by the dice; see [`Net::loss`](super::Net::loss).
    pub lost: u64,
    /// The link was cut when they were sent or arrived.
    pub cut: u64,
    /// No socket was bound there, or one that is connected to another address.
    pub unbound: u64,
    /// The receiver's socket held as many as it can.
    pub full: u64,
}

impl DroppedDatagrams {
    /// Returns the sum of all reasons.
    pub fn total(&self) -> u64 {
        self.lost + self.cut + self.unbound + self.full
    }
}

/// What a datagram socket has received, and its peer.
#[derive(Debug)]
pub(super) struct Mailbox {
    host: usize,
    name: Name,
    peer: Option<Peer>,
    arrived: VecDeque<(Name, Vec<u8>)>,
    source: Arc<Source>,
    /// Senders within the host that found it full.
    held_back: Vec<Arc<Source>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Peer {
    Named(Name),
    /// The other one of a pair, by number.
    Paired(u64),
}

impl State {
    fn add_mailbox(&mut self, network: &Arc<Network>, host: usize, name: Name) -> Datagrams {
        let number = self.next_number();
        let source = Arc::new(Source::default());
        source.set_ready(Direction::Write);
        let mailbox = Mailbox {
            host,
            name: name.clone(),
            peer: None,
            arrived: VecDeque::new(),
            source: source.clone(),
            held_back: Vec::new(),
        };
        self.mailboxes.insert(number, mailbox);
        if name != Name::Unnamed {
            self.bound.insert(name, number);
        }
        Datagrams {
            network: network.clone(),
            number,
            source,
            options: Mutex::default(),
        }
    }

    /// Puts a datagram on its way, if it is not lost there.
    fn send_datagram(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], world: &World) {
        let (Some(here), Some(there)) = (self.host_at(from), self.host_at(to)) else {
            self.dropped.unbound += 1;
            return;
        };
        if self.is_cut(here, there) {
            self.dropped.cut += 1;
            return;
        }
        let lost = (self.loss * MILLION as f64) as usize;
        if here != there && lost > 0 && world.below(MILLION) < lost {
            self.dropped.lost += 1;
            return;
        }
        let at = self.arrival(here, there, world);
        let bytes = bytes.to_vec();
        self.plan(at, Event::Datagram { from, to, bytes });
    }

    pub(super) fn datagram_arrived(
        &mut self,
        from: SocketAddr,
        to: SocketAddr,
        bytes: Vec<u8>,
        wakes: &mut Wakes,
    ) {
        if let (Some(here), Some(there)) = (self.host_at(from), self.host_at(to))
            && self.is_cut(here, there)
        {
            self.dropped.cut += 1;
            return;
        }
        let from = Name::Socket(from);
        let number = self.bound.get(&Name::Socket(to));
        let Some(mailbox) = number.and_then(|number| self.mailboxes.get_mut(number)) else {
            self.dropped.unbound += 1;
            return;
        };
        let stranger = |peer: &Peer| !matches!(peer, Peer::Named(name) if *name == from);
        if mailbox.peer.as_ref().is_some_and(stranger) {
            self.dropped.unbound += 1;
        } else if mailbox.arrived.len() >= MAILBOX {
            self.dropped.full += 1;
        } else {
            mailbox.arrived.push_back((from, bytes));
            wakes.add(Some(&mailbox.source), Direction::Read);
        }
    }

    /// Delivers a datagram within the host, or refuses it.
    fn hand_over(
        &mut self,
        sender: u64,
        to: &Peer,
        bytes: &[u8],
        wakes: &mut Wakes,
    ) -> io::Result<()> {
        let (from, source) = match self.mailboxes.get(&sender) {
            Some(own) => (own.name.clone(), own.source.clone()),
            None => return Err(io::ErrorKind::NotConnected.into()),
        };
        let number = match to {
            Peer::Paired(number) => *number,
            Peer::Named(name) => match self.bound.get(name) {
                Some(number) => *number,
                None if self.listeners.contains_key(name) => {
                    // A stream socket is there.
                    return Err(io::Error::from_raw_os_error(libc::EPROTOTYPE));
                }
                None => return Err(io::ErrorKind::NotFound.into()),
            },
        };
        let Some(mailbox) = self.mailboxes.get_mut(&number) else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        match &mailbox.peer {
            None => {}
            Some(Peer::Named(name)) if *name == from => {}
            Some(Peer::Paired(number)) if *number == sender => {}
            Some(_) => return Err(io::ErrorKind::PermissionDenied.into()),
        }
        if mailbox.arrived.len() >= MAILBOX {
            if !mailbox
                .held_back
                .iter()
                .any(|known| Arc::ptr_eq(known, &source))
            {
                mailbox.held_back.push(source);
            }
            return Err(io::ErrorKind::WouldBlock.into());
        }
        mailbox.arrived.push_back((from, bytes.to_vec()));
        wakes.add(Some(&mailbox.source), Direction::Read);
        Ok(())
    }
}

impl Network {
    /// A socket at one of this host's ports; port 0 takes a free one.
    pub(in crate::net) fn bind(self: &Arc<Self>, address: SocketAddr) -> io::Result<Datagrams> {
        let mut state = self.state.lock();
        let here = state.here();
        let name = Name::Socket(state.own_address(address)?);
        if state.bound.contains_key(&name) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(state.add_mailbox(self, here, name))
    }

    /// A socket at a path of this host.
    pub(in crate::net) fn bind_path(self: &Arc<Self>, path: PathBuf) -> io::Result<Datagrams> {
        let mut state = self.state.lock();
        let host = state.here();
        let name = Name::Path { host, path };
        if state.is_taken(&name) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        Ok(state.add_mailbox(self, host, name))
    }

    /// A socket without a name.
    pub(in crate::net) fn unbound(self: &Arc<Self>) -> Datagrams {
        let mut state = self.state.lock();
        let here = state.here();
        state.add_mailbox(self, here, Name::Unnamed)
    }

    /// Makes two sockets that are connected to each other.
    pub(in crate::net) fn datagram_pair(self: &Arc<Self>) -> (Datagrams, Datagrams) {
        let (one, other) = (self.unbound(), self.unbound());
        let mut state = self.state.lock();
        for (own, peer) in [(&one, &other), (&other, &one)] {
            if let Some(mailbox) = state.mailboxes.get_mut(&own.number) {
                mailbox.peer = Some(Peer::Paired(peer.number));
            }
        }
        drop(state);
        (one, other)
    }
}

/// A datagram socket in the simulated network.
#[derive(Debug)]
pub(in crate::net) struct Datagrams {
    network: Arc<Network>,
    number: u64,
    source: Arc<Source>,
    options: Mutex<Options>,
}

impl Datagrams {
    pub(in crate::net) fn options(&self) -> &Mutex<Options> {
        &self.options
    }

    pub(in crate::net) fn source(&self) -> &Source {
        &self.source
    }

    fn own<R>(&self, f: impl FnOnce(&mut Mailbox) -> R) -> io::Result<R> {
        let mut state = self.network.state.lock();
        match state.mailboxes.get_mut(&self.number) {
            Some(mailbox) => Ok(f(mailbox)),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    pub(in crate::net) fn connect(&self, address: SocketAddr) -> io::Result<()> {
        self.own(|mailbox| mailbox.peer = Some(Peer::Named(Name::Socket(address))))
    }

    pub(in crate::net) fn connect_path(&self, path: PathBuf) -> io::Result<()> {
        let host = self.own(|mailbox| mailbox.host)?;
        let name = Name::Path { host, path };
        if !self.network.state.lock().is_taken(&name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.own(|mailbox| mailbox.peer = Some(Peer::Named(name)))
    }

    pub(in crate::net) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.own(|mailbox| mailbox.peer.clone())? {
            Some(peer) => self.send_to_peer(bytes, &peer),
            None => Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "this socket has no peer: connect it first, or use send_to",
            )),
        }
    }

    pub(in crate::net) fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.send_to_peer(bytes, &Peer::Named(Name::Socket(to)))
    }

    pub(in crate::net) fn send_to_path(&self, bytes: &[u8], path: PathBuf) -> io::Result<usize> {
        let host = self.own(|mailbox| mailbox.host)?;
        self.send_to_peer(bytes, &Peer::Named(Name::Path { host, path }))
    }

    fn send_to_peer(&self, bytes: &[u8], to: &Peer) -> io::Result<usize> {
        let own = self.own(|mailbox| mailbox.name.clone())?;
        self.network.change(|state, wakes| {
            match (&own, to) {
                (Name::Socket(_), _) if bytes.len() > LARGEST => {
                    return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
                }
                (Name::Socket(from), Peer::Named(Name::Socket(to))) => {
                    state.send_datagram(*from, *to, bytes, &self.network.world);
                }
                _ => state.hand_over(self.number, to, bytes, wakes)?,
            }
            Ok(bytes.len())
        })
    }

    /// The next datagram, as far as it fits; the rest of it is gone, unless it is only a peek.
    pub(in crate::net) fn receive(
        &self,
        buffer: &mut [u8],
        peek: bool,
    ) -> io::Result<(usize, Name)> {
        let next = self.network.change(|state, wakes| {
            let mailbox = state.mailboxes.get_mut(&self.number)?;
            if peek {
                return mailbox.arrived.front().cloned();
            }
            let next = mailbox.arrived.pop_front();
            for sender in mailbox.held_back.drain(..) {
                wakes.add(Some(&sender), Direction::Write);
            }
            next
        });
        let Some((from, bytes)) = next else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        Ok((count, from))
    }

    pub(in crate::net) fn local(&self) -> io::Result<Name> {
        self.own(|mailbox| mailbox.name.clone())
    }

    pub(in crate::net) fn peer(&self) -> io::Result<Name> {
        match self.own(|mailbox| mailbox.peer.clone())? {
            Some(Peer::Named(name)) => Ok(name),
            Some(Peer::Paired(_)) => Ok(Name::Unnamed),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.network.change(|state, wakes| {
            if let Some(mailbox) = state.mailboxes.remove(&self.number) {
                state.bound.remove(&mailbox.name);
                // They learn that the socket is gone.
                for sender in &mailbox.held_back {
                    wakes.add(Some(sender), Direction::Write);
                }
            }
        });
    }
}

//! Connections of the simulated network: two pipes each, one per direction.
//!
//! A link that is cut holds back what was sent, as TCP would, until it is healed. A pipe is kept
//! until both of its ends are gone; what arrives after that is dropped.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use windlass_core::sync::{Arc, Mutex, World};

use super::{Event, Name, Network, Options, State, Wakes, address_of};
use windlass_runtime::driver::{Direction, Source};

/// Bytes that a direction of a connection holds before a writer waits.
const WINDOW: usize = 64 * 1024;
/// Connections that wait to be accepted; the next one is refused.
const BACKLOG: usize = 128;
/// A request to connect that meets a cut link is sent again after this long.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// What waits at a listener.
#[derive(Debug)]
pub(super) struct Backlog {
    waiting: VecDeque<(End, Name, Arc<Source>)>,
    source: Arc<Source>,
}

/// One direction of a connection.
#[derive(Debug)]
pub(super) struct Pipe {
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
    /// The writer has said that no more comes; later that has arrived.
    finished: bool,
    ended: bool,
    reset: bool,
    /// The reader wants no more than what has arrived.
    read_shut: bool,
    reader: Side,
    writer: Side,
}

/// The socket at one end of a pipe.
#[derive(Debug, Default)]
enum Side {
    /// No socket yet: the connection was not accepted.
    #[default]
    Expected,
    Here(Arc<Source>),
    Gone,
}

impl Side {
    fn source(&self) -> Option<&Arc<Source>> {
        match self {
            Side::Here(source) => Some(source),
            Side::Expected | Side::Gone => None,
        }
    }

    fn is_gone(&self) -> bool {
        matches!(self, Side::Gone)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Asked,
    Yes,
    Refused,
}

/// One end of a connection: the pipe it reads and the one it writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    reads: u64,
    writes: u64,
}

impl End {
    fn other(self) -> End {
        End {
            reads: self.writes,
            writes: self.reads,
        }
    }
}

impl Pipe {
    /// Both sides learn of a reset; what was on its way is lost.
    fn reset(&mut self, wakes: &mut Wakes) {
        self.reset = true;
        self.held.clear();
        wakes.add(self.reader.source(), Direction::Read);
        wakes.add(self.writer.source(), Direction::Write);
    }
}

impl State {
    fn add_pipe(&mut self, from: usize, to: usize) -> u64 {
        let number = self.next_number();
        let pipe = Pipe {
            from,
            to,
            arrived: VecDeque::new(),
            outstanding: 0,
            last_arrival: 0,
            held: Vec::new(),
            open: Open::Asked,
            finished: false,
            ended: false,
            reset: false,
            read_shut: false,
            reader: Side::Expected,
            writer: Side::Expected,
        };
        self.pipes.insert(number, pipe);
        number
    }

    /// The pipes of a new connection, as the end on `here` sees them.
    fn add_connection(&mut self, here: usize, there: usize) -> End {
        End {
            reads: self.add_pipe(there, here),
            writes: self.add_pipe(here, there),
        }
    }

    /// Marks this end as used.
    fn settle(&mut self, end: End, source: &Arc<Source>) {
        if let Some(pipe) = self.pipes.get_mut(&end.reads) {
            pipe.reader = Side::Here(source.clone());
        }
        if let Some(pipe) = self.pipes.get_mut(&end.writes) {
            pipe.writer = Side::Here(source.clone());
        }
    }

    /// Marks this end as unused for good.
    fn leave(&mut self, end: End, wakes: &mut Wakes) {
        if let Some(pipe) = self.pipes.get_mut(&end.reads) {
            pipe.reader = Side::Gone;
            pipe.arrived.clear();
            wakes.add(pipe.writer.source(), Direction::Write);
        }
        if let Some(pipe) = self.pipes.get_mut(&end.writes) {
            pipe.writer = Side::Gone;
        }
        for number in [end.reads, end.writes] {
            let abandoned = |pipe: &Pipe| pipe.reader.is_gone() && pipe.writer.is_gone();
            if self.pipes.get(&number).is_some_and(abandoned) {
                self.pipes.remove(&number);
            }
        }
    }

    /// Puts an event on its way through a pipe; it arrives after everything sent before it.
    fn send(&mut self, pipe: u64, event: Event, world: &World) {
        let Some(there) = self.pipes.get(&pipe) else {
            return;
        };
        let at = self.arrival(there.from, there.to, world);
        let at = at.max(there.last_arrival);
        if let Some(there) = self.pipes.get_mut(&pipe) {
            there.last_arrival = at;
        }
        self.plan(at, event);
    }

    /// Puts bytes on their way; none: the end.
    fn send_bytes(&mut self, pipe: u64, bytes: Vec<u8>, world: &World) {
        let Some(there) = self.pipes.get(&pipe) else {
            return;
        };
        let is_cut = self.is_cut(there.from, there.to) || !there.held.is_empty();
        if let Some(there) = self.pipes.get_mut(&pipe) {
            there.outstanding += bytes.len();
            if is_cut {
                return there.held.push(bytes);
            }
        }
        self.send(pipe, Event::Bytes { pipe, bytes }, world);
    }

    /// Says once that nothing more comes.
    fn finish(&mut self, pipe: u64, world: &World) {
        if let Some(there) = self.pipes.get_mut(&pipe)
            && !there.reset
            && !there.finished
        {
            there.finished = true;
            self.send_bytes(pipe, Vec::new(), world);
        }
    }

    pub(super) fn bytes_arrived(&mut self, pipe: u64, bytes: Vec<u8>, wakes: &mut Wakes) {
        let Some(there) = self.pipes.get(&pipe) else {
            return;
        };
        let is_cut = self.is_cut(there.from, there.to);
        let Some(there) = self.pipes.get_mut(&pipe) else {
            return;
        };
        if is_cut {
            // It was on its way when the link was cut: sent again once that is healed.
            return there.held.push(bytes);
        }
        if there.reset || there.reader.is_gone() {
            // It was on its way when the connection broke or the reader left.
            return;
        }
        if bytes.is_empty() {
            there.ended = true;
        } else {
            there.arrived.extend(bytes);
        }
        wakes.add(there.reader.source(), Direction::Read);
    }

    pub(super) fn knocked(
        &mut self,
        from: End,
        to: Name,
        peer: Name,
        world: &World,
        wakes: &mut Wakes,
    ) {
        let Some(pipe) = self.pipes.get(&from.writes) else {
            return;
        };
        if pipe.writer.is_gone() {
            // The asker has given up.
            return self.leave(from.other(), wakes);
        }
        if self.is_cut(pipe.from, pipe.to) {
            let later = world.now() + ASK_AGAIN.as_nanos() as u64;
            return self.plan(later, Event::Knock { from, to, peer });
        }
        if let Some(pipe) = self.pipes.get_mut(&from.writes) {
            pipe.open = Open::Yes;
        }
        let accepted = match self.listeners.get_mut(&to) {
            Some(backlog) if backlog.waiting.len() < BACKLOG => {
                let source = Arc::new(Source::default());
                let accepted = (from.other(), peer, source.clone());
                backlog.waiting.push_back(accepted);
                wakes.add(Some(&backlog.source), Direction::Read);
                wakes.add(Some(&source), Direction::Write);
                self.settle(from.other(), &source);
                true
            }
            _ => false,
        };
        let answer = Event::Answer {
            pipe: from.reads,
            accepted,
        };
        self.send(from.reads, answer, world);
        if !accepted {
            self.leave(from.other(), wakes);
        }
    }

    pub(super) fn answered(&mut self, pipe: u64, accepted: bool, wakes: &mut Wakes) {
        if let Some(pipe) = self.pipes.get_mut(&pipe) {
            pipe.open = if accepted { Open::Yes } else { Open::Refused };
            wakes.add(pipe.reader.source(), Direction::Write);
        }
    }

    /// Both ends of every connection between two hosts learn that it is broken.
    pub(super) fn reset_between(&mut self, a: usize, b: usize, wakes: &mut Wakes) {
        for pipe in self.pipes.values_mut() {
            if (pipe.from, pipe.to) == (a, b) || (pipe.from, pipe.to) == (b, a) {
                pipe.reset(wakes);
            }
        }
    }

    /// The link between two hosts works again: what was held back is sent.
    pub(super) fn send_held(&mut self, a: usize, b: usize, world: &World) {
        let mut held = Vec::new();
        for (number, pipe) in &mut self.pipes {
            if (pipe.from, pipe.to) == (a, b) || (pipe.from, pipe.to) == (b, a) {
                held.extend(pipe.held.drain(..).map(|bytes| (*number, bytes)));
            }
        }
        for (pipe, bytes) in held {
            self.send(pipe, Event::Bytes { pipe, bytes }, world);
        }
    }
}

impl Network {
    /// Listens at one of this host's addresses; port 0 takes a free one.
    pub(in crate::net) fn listen(self: &Arc<Self>, address: SocketAddr) -> io::Result<Listener> {
        let mut state = self.state.lock();
        let name = Name::Socket(state.own_address(address)?);
        self.listen_at(&mut state, name)
    }

    /// Listens at a path of this host.
    pub(in crate::net) fn listen_path(self: &Arc<Self>, path: PathBuf) -> io::Result<Listener> {
        let mut state = self.state.lock();
        let host = state.here();
        let name = Name::Path { host, path };
        if state.is_taken(&name) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.listen_at(&mut state, name)
    }

    fn listen_at(self: &Arc<Self>, state: &mut State, name: Name) -> io::Result<Listener> {
        if state.listeners.contains_key(&name) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let source = Arc::new(Source::default());
        let backlog = Backlog {
            waiting: VecDeque::new(),
            source: source.clone(),
        };
        state.listeners.insert(name.clone(), backlog);
        Ok(Listener {
            network: self.clone(),
            name,
            source,
        })
    }

    pub(in crate::net) async fn connect(
        self: &Arc<Self>,
        address: SocketAddr,
    ) -> io::Result<Stream> {
        let asking = {
            let mut state = self.state.lock();
            let here = state.here();
            let Some(there) = state.host_at(address) else {
                return Err(io::ErrorKind::HostUnreachable.into());
            };
            let local = Name::Socket(address_of(here, state.free_port(here)?));
            self.knock(&mut state, (here, there), local, Name::Socket(address))
        };
        asking.answered().await
    }

    pub(in crate::net) async fn connect_path(
        self: &Arc<Self>,
        path: PathBuf,
    ) -> io::Result<Stream> {
        let asking = {
            let mut state = self.state.lock();
            let host = state.here();
            let name = Name::Path { host, path };
            if !state.is_taken(&name) {
                return Err(io::ErrorKind::NotFound.into());
            }
            self.knock(&mut state, (host, host), Name::Unnamed, name)
        };
        asking.answered().await
    }

    /// Sends a request to connect.
    fn knock(
        self: &Arc<Self>,
        state: &mut State,
        (here, there): (usize, usize),
        local: Name,
        peer: Name,
    ) -> Stream {
        let end = state.add_connection(here, there);
        let source = Arc::new(Source::default());
        state.settle(end, &source);
        let knock = Event::Knock {
            from: end,
            to: peer.clone(),
            peer: local.clone(),
        };
        state.send(end.writes, knock, &self.world);
        self.stream(end, local, peer, source)
    }

    /// Two ends of a connection within this host.
    pub(in crate::net) fn stream_pair(self: &Arc<Self>) -> (Stream, Stream) {
        let mut state = self.state.lock();
        let here = state.here();
        let end = state.add_connection(here, here);
        let ends = [end, end.other()].map(|end| {
            let source = Arc::new(Source::default());
            source.set_ready(Direction::Write);
            state.settle(end, &source);
            self.stream(end, Name::Unnamed, Name::Unnamed, source)
        });
        ends.into()
    }

    fn stream(self: &Arc<Self>, end: End, local: Name, peer: Name, source: Arc<Source>) -> Stream {
        Stream {
            network: self.clone(),
            end,
            local,
            peer,
            source,
            options: Mutex::default(),
        }
    }
}

/// A listener in the simulated network.
#[derive(Debug)]
pub(in crate::net) struct Listener {
    network: Arc<Network>,
    name: Name,
    source: Arc<Source>,
}

impl Listener {
    pub(in crate::net) fn source(&self) -> &Source {
        &self.source
    }

    pub(in crate::net) fn accept(&self) -> io::Result<Stream> {
        let mut state = self.network.state.lock();
        let waiting = state
            .listeners
            .get_mut(&self.name)
            .and_then(|backlog| backlog.waiting.pop_front());
        match waiting {
            Some((end, peer, source)) => {
                Ok(self.network.stream(end, self.name.clone(), peer, source))
            }
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(in crate::net) fn name(&self) -> &Name {
        &self.name
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.network.change(|state, wakes| {
            let backlog = state.listeners.remove(&self.name);
            for (end, _, _) in backlog.into_iter().flat_map(|backlog| backlog.waiting) {
                // No task will ever accept them.
                for pipe in [end.reads, end.writes] {
                    if let Some(pipe) = state.pipes.get_mut(&pipe) {
                        pipe.reset(wakes);
                    }
                }
                state.leave(end, wakes);
            }
        });
    }
}

/// A connection in the simulated network.
#[derive(Debug)]
pub(in crate::net) struct Stream {
    network: Arc<Network>,
    end: End,
    local: Name,
    peer: Name,
    source: Arc<Source>,
    options: Mutex<Options>,
}

impl Stream {
    pub(in crate::net) fn options(&self) -> &Mutex<Options> {
        &self.options
    }

    pub(in crate::net) fn source(&self) -> &Source {
        &self.source
    }

    /// Waits for the answer to a request to connect.
    async fn answered(self) -> io::Result<Stream> {
        let answer = self.source.io(Direction::Write, || {
            let state = self.network.state.lock();
            match state.pipes.get(&self.end.reads) {
                Some(pipe) if pipe.reset => Err(io::ErrorKind::ConnectionReset.into()),
                Some(pipe) if pipe.open == Open::Yes => Ok(()),
                Some(pipe) if pipe.open == Open::Asked => Err(io::ErrorKind::WouldBlock.into()),
                _ => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        });
        answer.await?;
        Ok(self)
    }

    /// Up to `room` bytes of what has arrived; left there for the next if it is only a peek.
    fn take(&self, room: usize, peek: bool) -> io::Result<Vec<u8>> {
        self.network.change(|state, wakes| {
            let Some(pipe) = state.pipes.get_mut(&self.end.reads) else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            if pipe.arrived.is_empty() {
                if pipe.reset {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                if pipe.ended || pipe.read_shut || room == 0 {
                    return Ok(Vec::new());
                }
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = room.min(pipe.arrived.len());
            if peek {
                return Ok(pipe.arrived.range(..count).copied().collect());
            }
            pipe.outstanding -= count;
            wakes.add(pipe.writer.source(), Direction::Write);
            Ok(pipe.arrived.drain(..count).collect())
        })
    }

    pub(in crate::net) fn read_vectored(
        &self,
        buffers: &mut [IoSliceMut<'_>],
    ) -> io::Result<usize> {
        let room = buffers.iter().map(|buffer| buffer.len()).sum();
        let bytes = self.take(room, false)?;
        let mut rest = bytes.as_slice();
        for buffer in buffers {
            let (now, later) = rest.split_at(rest.len().min(buffer.len()));
            buffer[..now.len()].copy_from_slice(now);
            rest = later;
        }
        Ok(bytes.len())
    }

    pub(in crate::net) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.take(buffer.len(), true)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    pub(in crate::net) fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut state = self.network.state.lock();
        let Some(pipe) = state.pipes.get(&self.end.writes) else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if pipe.reset {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if pipe.reader.is_gone() || pipe.finished {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let room = WINDOW.saturating_sub(pipe.outstanding);
        let all = buffers.iter().flat_map(|buffer| buffer.iter().copied());
        let bytes: Vec<u8> = all.take(room).collect();
        let count = bytes.len();
        if count > 0 {
            state.send_bytes(self.end.writes, bytes, &self.network.world);
        } else if buffers.iter().any(|buffer| !buffer.is_empty()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(count)
    }

    pub(in crate::net) fn shutdown(&self, how: Shutdown) {
        self.network.change(|state, wakes| {
            if how != Shutdown::Read {
                state.finish(self.end.writes, &self.network.world);
            }
            if how != Shutdown::Write
                && let Some(pipe) = state.pipes.get_mut(&self.end.reads)
            {
                pipe.read_shut = true;
                wakes.add(pipe.reader.source(), Direction::Read);
            }
        });
    }

    pub(in crate::net) fn local(&self) -> &Name {
        &self.local
    }

    pub(in crate::net) fn peer(&self) -> &Name {
        &self.peer
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.network.change(|state, wakes| {
            state.finish(self.end.writes, &self.network.world);
            state.leave(self.end, wakes);
        });
    }
}

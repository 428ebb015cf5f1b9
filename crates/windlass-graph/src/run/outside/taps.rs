//! Taps: reading an edge from outside while a graph runs.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_sync::lock::Notify;

use crate::run::state::channel::Channel;
use windlass_value::Payload;

/// Another reader of an edge. It has a cursor of its own: what it has not read when the edge
/// overflows it misses, and it learns how many. Ends with the run.
#[derive(Clone)]
pub struct Tap(Arc<Shared>);

struct Shared {
    edge: usize,
    room: usize,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Tapped>,
    over: bool,
}

/// A message that went over an edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Tapped {
    /// What it carried.
    pub payload: Payload,
    /// Its number on the edge, from 1.
    pub seq: u64,
    /// The epoch in which it was committed.
    pub epoch: u64,
    /// How many before it were lost to this reader.
    pub missed: u64,
}

/// Why an edge cannot be tapped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TapError {
    /// There is no edge of this id.
    NoEdge(String),
    /// The edge has one reader only.
    SingleReader(String),
}

impl fmt::Display for TapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TapError::NoEdge(edge) => write!(f, "there is no edge {edge}"),
            TapError::SingleReader(edge) => write!(
                f,
                "edge {edge} has one reader: give its policy `readers: multi` to tap it"
            ),
        }
    }
}

impl std::error::Error for TapError {}

impl Tap {
    pub(crate) fn new(edge: usize, room: usize) -> Tap {
        Tap(Arc::new(Shared {
            edge,
            room,
            state: Mutex::new(State::default()),
            changed: Notify::new(),
        }))
    }

    /// The next message, if one is there.
    pub fn try_next(&self) -> Option<Tapped> {
        self.0.state.lock().waiting.pop_front()
    }

    /// The next message; none when the run is over.
    pub async fn next(&self) -> Option<Tapped> {
        loop {
            let changed = self.0.changed.notified();
            {
                let mut state = self.0.state.lock();
                if let Some(message) = state.waiting.pop_front() {
                    return Some(message);
                }
                if state.over {
                    return None;
                }
            }
            changed.await;
        }
    }

    pub(crate) fn end(&self) {
        self.0.state.lock().over = true;
        self.0.changed.notify_waiters();
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        write!(f, "Tap({} waiting)", state.waiting.len())
    }
}

/// The taps of a run.
#[derive(Default)]
pub(crate) struct Taps(Vec<OpenTap>);

/// A tap in a run, and its number at the channel.
struct OpenTap {
    tap: Tap,
    reader: usize,
}

/// The run has ended, or its future was dropped: a reader that waits gets the end.
impl Drop for OpenTap {
    fn drop(&mut self) {
        self.tap.end();
    }
}

impl Taps {
    /// Adds the taps that were asked for.
    pub(crate) fn add(&mut self, taps: Vec<Tap>, channels: &mut [Channel]) {
        for tap in taps {
            let reader = channels[tap.0.edge].tap();
            self.0.push(OpenTap { tap, reader });
        }
    }

    /// Gives taps what they have room for; the rest waits in the channel, as long as that keeps it.
    pub(crate) fn feed(&self, channels: &mut [Channel]) {
        for OpenTap { tap, reader } in &self.0 {
            let mut state = tap.0.state.lock();
            let mut fed = false;
            while state.waiting.len() < tap.0.room {
                let Some((message, missed)) = channels[tap.0.edge].take_for(*reader) else {
                    break;
                };
                state.waiting.push_back(Tapped {
                    seq: message.seq,
                    epoch: message.epoch,
                    payload: message.payload,
                    missed,
                });
                fed = true;
            }
            drop(state);
            if fed {
                tap.0.changed.notify_waiters();
            }
        }
    }
}

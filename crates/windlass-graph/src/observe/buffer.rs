//! Where events wait to be collected.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_sync::lock::Notify;

use super::event::Observed;

/// Where events wait to be collected. The run, which puts them there, never waits.
pub(super) struct Buffer {
    state: Mutex<State>,
    capacity: usize,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Observed>,
    dropped: u64,
    closed: bool,
}

impl Buffer {
    pub(super) fn new(capacity: usize) -> Buffer {
        Buffer {
            state: Mutex::default(),
            capacity,
            changed: Notify::new(),
        }
    }

    pub(super) fn push(&self, event: Observed) {
        let mut state = self.state.lock();
        if state.waiting.len() >= self.capacity {
            state.dropped += 1;
            return;
        }
        state.waiting.push_back(event);
        drop(state);
        self.changed.notify_one();
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
    }

    pub(super) fn dropped(&self) -> u64 {
        self.state.lock().dropped
    }
}

/// What comes out of a run that is observed: for one collector.
pub struct Events(Arc<Buffer>);

impl Events {
    pub(super) fn new(buffer: Arc<Buffer>) -> Events {
        Events(buffer)
    }

    /// The next event, if one is there.
    pub fn try_next(&self) -> Option<Observed> {
        self.0.state.lock().waiting.pop_front()
    }

    /// The next event; none when the run is over.
    pub async fn next(&self) -> Option<Observed> {
        loop {
            {
                let mut state = self.0.state.lock();
                if let Some(event) = state.waiting.pop_front() {
                    return Some(event);
                }
                if state.closed {
                    return None;
                }
            }
            // One collector: a token that came meanwhile is there.
            self.0.changed.notified().await;
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // The collector has ended: nothing will be taken.
        self.0.state.lock().waiting.clear();
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        write!(
            f,
            "Events({} waiting, {} dropped)",
            state.waiting.len(),
            state.dropped
        )
    }
}

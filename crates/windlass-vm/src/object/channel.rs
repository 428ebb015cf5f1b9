//! Channels between guests.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync;
use windlass_sync::park::Generation;
use windlass_value::Payload;

use super::Waiter;
use crate::exception::Exception;
use crate::guest::Answer;
use crate::guest_shared::GuestShared;

/// A queue of values between guests, in their order; with a capacity of 0 a sender waits for its
/// receiver.
///
/// Made with [`Budget::channel`](crate::Budget::channel) or [`Vm::channel`](crate::Vm::channel).
#[derive(Clone)]
pub struct Channel {
    id: u64,
    state: Arc<sync::Mutex<State>>,
}

struct State {
    capacity: usize,
    kept: VecDeque<Payload>,
    /// Those who wait to send, with what. Only when nothing more can be kept.
    senders: VecDeque<(Waiter, Payload)>,
    /// Guests that wait to receive; only while the channel is empty and has no waiting sender.
    receivers: VecDeque<Waiter>,
    closed: bool,
}

impl Channel {
    pub(crate) fn new(id: u64, capacity: usize) -> Channel {
        Channel {
            id,
            state: Arc::new(sync::Mutex::new(State {
                capacity,
                kept: VecDeque::new(),
                senders: VecDeque::new(),
                receivers: VecDeque::new(),
                closed: false,
            })),
        }
    }

    /// Its number, among those of its VM.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many values are kept.
    pub fn len(&self) -> usize {
        self.state.lock().kept.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it was closed. What is kept can still be received.
    pub fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    pub(crate) fn send(&self, waiter: Waiter, value: Payload) {
        let mut state = self.state.lock();
        if state.closed {
            let _ = waiter.end(Err(Exception::Closed(value)));
            return;
        }
        let mut value = value;
        while let Some(receiver) = state.receivers.pop_front() {
            match receiver.end(Ok(Answer::Value(value))) {
                Ok(()) => {
                    let _ = waiter.end(Ok(Payload::Nil.into()));
                    return;
                }
                Err(back) => value = back.map_or(Payload::Nil, Answer::into_value),
            }
        }
        if state.kept.len() < state.capacity {
            state.kept.push_back(value);
            let _ = waiter.end(Ok(Payload::Nil.into()));
        } else {
            state.senders.push_back((waiter, value));
        }
    }

    pub(crate) fn receive(&self, waiter: Waiter) {
        let mut state = self.state.lock();
        if let Some(value) = state.kept.pop_front() {
            match waiter.end(Ok(Answer::Value(value))) {
                Ok(()) => state.refill(),
                Err(back) => state
                    .kept
                    .push_front(back.map_or(Payload::Nil, Answer::into_value)),
            }
            return;
        }
        while let Some((sender, value)) = state.senders.pop_front() {
            // One that has been cancelled has not sent.
            if sender.end(Ok(Payload::Nil.into())).is_ok() {
                let _ = waiter.end(Ok(Answer::Value(value)));
                return;
            }
        }
        if state.closed {
            let _ = waiter.end(Err(Exception::Closed(Payload::Nil)));
        } else {
            state.receivers.push_back(waiter);
        }
    }

    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        for receiver in std::mem::take(&mut state.receivers) {
            let _ = receiver.end(Err(Exception::Closed(Payload::Nil)));
        }
        for (sender, value) in std::mem::take(&mut state.senders) {
            let _ = sender.end(Err(Exception::Closed(value)));
        }
    }

    /// Takes a wait out of the queues.
    pub(crate) fn forget(&self, guest: &Arc<GuestShared>, generation: Generation) {
        let mut state = self.state.lock();
        state.receivers.retain(|w| !w.is(guest, generation));
        state.senders.retain(|(w, _)| !w.is(guest, generation));
    }
}

impl State {
    /// There is room: the longest waiting sender has sent.
    fn refill(&mut self) {
        while self.kept.len() < self.capacity {
            let Some((sender, value)) = self.senders.pop_front() else {
                return;
            };
            if sender.end(Ok(Payload::Nil.into())).is_ok() {
                self.kept.push_back(value);
            }
        }
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Channel");
        out.field("id", &self.id);
        if let Some(state) = self.state.try_lock() {
            out.field("kept", &state.kept.len())
                .field("capacity", &state.capacity)
                .field("senders", &state.senders.len())
                .field("receivers", &state.receivers.len())
                .field("closed", &state.closed);
        }
        out.finish()
    }
}

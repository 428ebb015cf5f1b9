//! What the loom models of the timers need to see of them.

use std::pin::Pin;
use std::task::Waker;

use windlass_core::sync::Arc;

use crate::time::timers::{Shard, Timers};
use crate::time::wheel::{Entry, TimerState};

/// The timers of a runtime of one worker.
#[derive(Debug)]
pub struct Model(Timers);

/// A timer as a sleeping future has it.
#[derive(Debug)]
pub struct Timer {
    shard: Arc<Shard>,
    entry: Pin<Box<Entry>>,
}

impl Model {
    /// `ring` ends a sleep.
    pub fn new(ring: impl Fn() + Send + Sync + 'static) -> Model {
        Model(Timers::new(1, ring))
    }

    /// Sets a timer.
    pub fn set(&self, deadline: u64, waker: Waker) -> Timer {
        let timer = Timer {
            shard: self.0.of_worker(0).clone(),
            entry: Box::pin(Entry::new()),
        };
        timer.set(deadline, waker);
        timer
    }

    /// Returns until when the holder of the driver may sleep.
    pub fn begin_sleep(&self) -> Option<u64> {
        self.0.begin_sleep()
    }

    /// Fires what is due.
    pub fn expire(&self, now: u64) {
        self.0.expire(now);
    }
}

impl Timer {
    fn set(&self, deadline: u64, waker: Waker) {
        // SAFETY: rule 2 of the wheel: pinned, not linked, and cancelled in the drop.
        assert!(unsafe { self.shard.register(&self.entry, deadline, 0, waker) });
    }

    /// If it has fired: looks at it as its drop does, without the lock, and sets it again, as a
    /// sleep that is reset does.
    pub fn renew_if_due(&self, deadline: u64, waker: Waker) -> bool {
        let due = self.entry.state() == TimerState::Due;
        if due {
            self.entry.look_as_owner();
            self.entry.renew();
            self.set(deadline, waker);
        }
        due
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.entry.state() == TimerState::Waiting {
            // SAFETY: rule 2 of the wheel: registered there, and alive.
            unsafe { self.shard.cancel(&self.entry) };
        }
    }
}

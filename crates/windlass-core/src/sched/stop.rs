//! The phases of a pool's end.
//!
//! ```text
//! RUNNING -> STOPPING -> (deadline: FORCED) -> EXITING
//! ```
//! *Stopping*: spawns are refused. Every worker cancels the idle tasks of its own shard and every
//! task it takes from a queue; shielded sections go on. A worker with nothing to do says that it
//! is drained. *Forced*: shields no longer count. *Exiting*: all are drained, the registry is
//! empty and the injector is closed, so that nothing can come; threads leave. A worker that is
//! still inside a poll at the end has its gate shut: it leaves when that poll returns, and starts
//! no other.

use std::time::Duration;

use crate::sync::atomic::{AtomicU8, Ordering};
use crate::sync::{Condvar, Mutex, clock};

/// A phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Work is accepted.
    Running = 0,
    /// Tasks are cancelled.
    Stopping = 1,
    /// Tasks are cancelled, shielded or not.
    Forced = 2,
    /// Workers leave.
    Exiting = 3,
}

#[derive(Debug)]
pub(crate) struct Stop {
    phase: AtomicU8,
    drained: Mutex<Drained>,
    changed: Condvar,
}

#[derive(Debug)]
struct Drained {
    workers: Vec<Status>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Busy,
    Drained,
    /// Not to start another poll.
    Shut,
}

impl Stop {
    pub(crate) fn new(workers: usize) -> Stop {
        Stop {
            phase: AtomicU8::new(Phase::Running as u8),
            drained: Mutex::new(Drained {
                workers: vec![Status::Busy; workers],
            }),
            changed: Condvar::new(),
        }
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.phase.load(Ordering::Relaxed) != Phase::Running as u8
    }

    pub(crate) fn phase(&self) -> Phase {
        // Acquire: pairs with the Release in `advance`.
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Stopping,
            2 => Phase::Forced,
            _ => Phase::Exiting,
        }
    }

    /// Moves to a later phase. False: it is there already.
    pub(crate) fn advance(&self, to: Phase) -> bool {
        self.phase.fetch_max(to as u8, Ordering::AcqRel) < to as u8
    }

    /// A worker has nothing to do.
    pub(crate) fn drained(&self, worker: usize) {
        let mut drained = self.drained.lock();
        if drained.workers[worker] == Status::Busy {
            drained.workers[worker] = Status::Drained;
            self.changed.notify_all();
        }
    }

    /// A worker that is stopping wants to go on. False: leave instead.
    #[must_use]
    pub(crate) fn may_go_on(&self, worker: usize) -> bool {
        let mut drained = self.drained.lock();
        let status = &mut drained.workers[worker];
        if *status == Status::Shut {
            return false;
        }
        *status = Status::Busy;
        true
    }

    /// Waits until all workers are drained and `finish` says that nothing is left, or until
    /// `deadline` on the clock. True: finished.
    pub(crate) fn wait(&self, deadline: Option<u64>, finish: impl Fn() -> bool) -> bool {
        let mut drained = self.drained.lock();
        loop {
            if drained
                .workers
                .iter()
                .all(|status| *status == Status::Drained)
                && finish()
            {
                return true;
            }
            let Some(deadline) = deadline else {
                drained = self.changed.wait(drained);
                continue;
            };
            let now = clock::now();
            if now >= deadline {
                return false;
            }
            drained = self
                .changed
                .wait_for(drained, Duration::from_nanos(deadline - now))
                .0;
        }
    }

    /// Shuts the gate of every worker that is not drained, and says which those are.
    pub(crate) fn shut_gates(&self) -> Vec<usize> {
        let mut drained = self.drained.lock();
        let mut stuck = Vec::new();
        for (index, status) in drained.workers.iter_mut().enumerate() {
            if *status != Status::Drained {
                *status = Status::Shut;
                stuck.push(index);
            }
        }
        stuck
    }
}

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

/// A phase of a pool's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Work is accepted.
    Running = 0,
    /// Tasks are cancelled.
    Stopping = 1,
    /// Tasks are cancelled, shielded or not.
    Forced = 2,
    /// The workers leave the pool.
    Exiting = 3,
}

#[derive(Debug)]
pub(crate) struct Stop {
    /// The phase, and CROWDED: all that a worker looks at between two tasks.
    notice: AtomicU8,
    workers: Mutex<Vec<Gate>>,
    changed: Condvar,
}

/// There are more workers than wanted.
const CROWDED: u8 = 0x80;

/// What a worker is known to be doing while the pool stops, and whether it may begin a turn.
#[derive(Debug, Clone, Copy)]
struct Gate {
    status: Status,
    shut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// It has not noticed yet that the pool stops.
    Unaware,
    /// It looks for something to do.
    Looking,
    /// It is inside a task's turn.
    InTurn,
    /// It has nothing to do.
    Drained,
}

impl Stop {
    /// Makes the phases of a pool without workers; worker ids are below `capacity`.
    pub(crate) fn new(capacity: usize) -> Stop {
        let gate = Gate {
            status: Status::Drained,
            shut: false,
        };
        Stop {
            notice: AtomicU8::new(Phase::Running as u8),
            workers: Mutex::new(vec![gate; capacity]),
            changed: Condvar::new(),
        }
    }

    /// A worker sits down.
    pub(crate) fn join(&self, worker_id: usize) {
        self.workers.lock()[worker_id].status = Status::Unaware;
    }

    /// The pool stops, or there are too many workers.
    #[inline]
    pub(crate) fn has_notice(&self) -> bool {
        self.notice.load(Ordering::Relaxed) != Phase::Running as u8
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.notice.load(Ordering::Relaxed) & !CROWDED != Phase::Running as u8
    }

    pub(crate) fn is_crowded(&self) -> bool {
        self.notice.load(Ordering::Relaxed) & CROWDED != 0
    }

    /// Under the crew's lock; in a current-thread pool, by the thread that runs it.
    pub(crate) fn set_crowded(&self, crowded: bool) {
        if crowded {
            self.notice.fetch_or(CROWDED, Ordering::Relaxed);
        } else if self.is_crowded() {
            self.notice.fetch_and(!CROWDED, Ordering::Relaxed);
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        // Acquire: pairs with the Release in `advance`.
        match self.notice.load(Ordering::Acquire) & !CROWDED {
            0 => Phase::Running,
            1 => Phase::Stopping,
            2 => Phase::Forced,
            _ => Phase::Exiting,
        }
    }

    /// Moves to a later phase. False: it is there already.
    pub(crate) fn advance(&self, to: Phase) -> bool {
        let mut now = self.notice.load(Ordering::Relaxed);
        while now & !CROWDED < to as u8 {
            let next = now & CROWDED | to as u8;
            // Release: pairs with the Acquire in `phase`.
            match self
                .notice
                .compare_exchange(now, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(changed) => now = changed,
            }
        }
        false
    }

    /// A worker has nothing to do.
    pub(crate) fn drained(&self, worker: usize) {
        self.workers.lock()[worker].status = Status::Drained;
        self.changed.notify_all();
    }

    /// A worker that is stopping goes on to look for something to do. False: leave instead.
    #[must_use]
    pub(crate) fn may_look(&self, worker: usize) -> bool {
        self.pass(worker, Status::Looking)
    }

    /// A worker that is stopping wants to begin a turn. False: drop the task instead.
    #[must_use]
    pub(crate) fn may_begin(&self, worker: usize) -> bool {
        self.pass(worker, Status::InTurn)
    }

    fn pass(&self, worker: usize, status: Status) -> bool {
        let gate = &mut self.workers.lock()[worker];
        if !gate.shut {
            gate.status = status;
        }
        !gate.shut
    }

    /// Waits until all workers are drained and `finish` says that nothing is left, or until
    /// `deadline` on the clock. True: finished.
    pub(crate) fn wait(&self, deadline: Option<u64>, finish: impl Fn() -> bool) -> bool {
        let mut workers = self.workers.lock();
        loop {
            if workers.iter().all(|gate| gate.status == Status::Drained) && finish() {
                return true;
            }
            let Some(deadline) = deadline else {
                workers = self.changed.wait(workers);
                continue;
            };
            let now = clock::now();
            if now >= deadline {
                return false;
            }
            workers = self
                .changed
                .wait_for(workers, Duration::from_nanos(deadline - now))
                .0;
        }
    }

    /// Workers that are, or may be, inside a turn.
    pub(crate) fn in_turn(&self) -> Vec<usize> {
        self.select(|status| matches!(status, Status::Unaware | Status::InTurn))
    }

    /// Workers that are not drained.
    pub(crate) fn not_drained(&self) -> Vec<usize> {
        self.select(|status| status != Status::Drained)
    }

    fn select(&self, which: impl Fn(Status) -> bool) -> Vec<usize> {
        let workers = self.workers.lock();
        (0..workers.len())
            .filter(|index| which(workers[*index].status))
            .collect()
    }

    /// From now on no worker begins a turn.
    pub(crate) fn shut_gates(&self) {
        self.workers
            .lock()
            .iter_mut()
            .for_each(|gate| gate.shut = true);
    }
}

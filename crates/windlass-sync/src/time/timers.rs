//! The timers of a runtime: a shard with a wheel per worker, and one for threads outside.
//!
//! # How a new deadline reaches a worker that already sleeps in the driver
//! ```text
//! register                                   sleep
//!   insert under the shard's lock              until := the minimum of all `next`
//!   next := deadline, if it is the earliest    fence(SeqCst)                     (T2)
//!   fence(SeqCst)                       (T1)   look at all `next` again: earlier? begin anew
//!   until > deadline? ring                     sleep until `until`
//! ```
//! Whichever fence comes first, one of the two sees the other: the sleeper sees the new `next`, or
//! the registrar sees `until` and rings. `until` is 0 while no thread sleeps. A timer that is not
//! the earliest of its shard notifies no thread: the sleeper already waits for the earliest, or a
//! cancelled one left its time behind and the sleeper looks then.
//!
//! Only the owner of a shard registers there, so its lock is taken without contention, except by
//! the worker that holds the driver when something is due, and by a task that moved and cancels
//! from afar.

use std::task::Waker;

use windlass_core::sync::atomic::{AtomicU64, Ordering, fence};
use windlass_core::sync::{Arc, Mutex, Padded};
use windlass_core::task::contain;

use crate::time::wheel::{Entry, Wheel};

/// Wakers that are collected under a shard's lock at a time.
const BATCH: usize = 64;
const NEVER: u64 = u64::MAX;
const AWAKE: u64 = 0;

/// Until when the driver's worker sleeps, and how to wake it.
struct Alarm {
    until: AtomicU64,
    ring: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alarm")
            .field("until", &self.until.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// A wheel and the time at which it has to be looked at.
#[derive(Debug)]
pub struct Shard {
    wheel: Mutex<Wheel>,
    /// Written under the lock, read by the holder of the driver.
    next: Padded<AtomicU64>,
    alarm: Arc<Alarm>,
}

/// All shards of a runtime.
#[derive(Debug)]
pub struct Timers {
    shards: Box<[Arc<Shard>]>,
    alarm: Arc<Alarm>,
}

impl Timers {
    /// Makes shards for `workers` workers and one for all other threads.
    pub fn new(workers: usize, ring: impl Fn() + Send + Sync + 'static) -> Timers {
        let alarm = Arc::new(Alarm {
            until: AtomicU64::new(AWAKE),
            ring: Box::new(ring),
        });
        Timers {
            shards: (0..=workers)
                .map(|_| {
                    Arc::new(Shard {
                        wheel: Mutex::new(Wheel::new()),
                        next: Padded(AtomicU64::new(NEVER)),
                        alarm: alarm.clone(),
                    })
                })
                .collect(),
            alarm,
        }
    }

    /// A worker's own shard. Those that came later share the one of other threads.
    pub fn of_worker(&self, worker: usize) -> &Arc<Shard> {
        self.shards.get(worker).unwrap_or(self.outside())
    }

    /// The shard of threads that are no workers.
    pub fn outside(&self) -> &Arc<Shard> {
        &self.shards[self.shards.len() - 1]
    }

    /// Returns when a timer has to be looked at next; none if there is no timer.
    pub fn next(&self) -> Option<u64> {
        let next = self.earliest();
        (next != NEVER).then_some(next)
    }

    fn earliest(&self) -> u64 {
        let of = |shard: &Arc<Shard>| shard.next.load(Ordering::Relaxed);
        self.shards.iter().map(of).min().unwrap_or(NEVER)
    }

    /// Timers that wait.
    pub fn waiting(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.wheel.lock().len())
            .sum()
    }

    /// The holder of the driver is about to sleep: until when, at most. None: until it is rung.
    pub fn begin_sleep(&self) -> Option<u64> {
        loop {
            let next = self.earliest();
            self.alarm.until.store(next, Ordering::Relaxed);
            // T2: pairs with the fence in `Shard::announce`.
            fence(Ordering::SeqCst);
            if self.earliest() >= next {
                return (next != NEVER).then_some(next);
            }
        }
    }

    /// Ends the sleep: the holder of the driver looks at all shards before it sleeps again.
    pub fn end_sleep(&self) {
        self.alarm.until.store(AWAKE, Ordering::Relaxed);
    }

    /// Fires what is due at `now`.
    pub fn expire(&self, now: u64) {
        for shard in &self.shards {
            if shard.next.load(Ordering::Relaxed) <= now {
                shard.expire(now);
            }
        }
    }

    /// Ends all timers: each is notified, and those that still wait go elsewhere.
    pub fn close(&self) {
        for shard in &self.shards {
            let wakers = {
                let mut wheel = shard.wheel.lock();
                shard.next.store(NEVER, Ordering::Relaxed);
                wheel.close()
            };
            wakers.into_iter().for_each(wake);
        }
    }
}

impl Shard {
    /// Links an entry. False: the runtime has ended.
    ///
    /// # Safety
    /// Rule 2 of the wheel: the entry is pinned, not linked, and [`cancel`](Shard::cancel)led here
    /// before it is freed.
    pub(super) unsafe fn register(
        &self,
        entry: &Entry,
        deadline: u64,
        now: u64,
        waker: Waker,
    ) -> bool {
        let mut wheel = self.wheel.lock();
        // SAFETY: passed on.
        if let Err(waker) = unsafe { wheel.insert(entry, deadline, now, waker) } {
            drop(wheel);
            drop(waker);
            return false;
        }
        let earliest = deadline < self.next.load(Ordering::Relaxed);
        if earliest {
            self.next.store(deadline, Ordering::Relaxed);
        }
        drop(wheel);
        if earliest {
            self.announce(deadline);
        }
        true
    }

    fn announce(&self, deadline: u64) {
        // T1: pairs with the fence in `Timers::begin_sleep`.
        fence(Ordering::SeqCst);
        if deadline < self.alarm.until.load(Ordering::Relaxed) {
            (self.alarm.ring)();
        }
    }

    /// Takes an entry out, if it still waits.
    ///
    /// # Safety
    /// Rule 2 of the wheel: the entry was registered here and is alive.
    pub(super) unsafe fn cancel(&self, entry: &Entry) {
        // SAFETY: passed on.
        let waker = unsafe { self.wheel.lock().remove(entry) };
        // Outside of the lock: a foreign waker's drop may run anything.
        drop(waker);
    }

    /// Exchanges the waker of an entry that still waits.
    ///
    /// # Safety
    /// As for `cancel`.
    pub(super) unsafe fn set_waker(&self, entry: &Entry, waker: &Waker) {
        let new = waker.clone();
        // SAFETY: passed on.
        let old = unsafe { self.wheel.lock().set_waker(entry, new) };
        drop(old);
    }

    fn expire(&self, now: u64) {
        let mut due = Vec::with_capacity(BATCH);
        loop {
            let mut wheel = self.wheel.lock();
            let more = wheel.expire(now, &mut due, BATCH);
            self.next.store(wheel.next(), Ordering::Relaxed);
            drop(wheel);
            due.drain(..).for_each(wake);
            if !more {
                return;
            }
        }
    }
}

/// A foreign waker may panic; that must not cost the others in the batch their wake-up.
fn wake(waker: Waker) {
    contain(|| waker.wake());
}

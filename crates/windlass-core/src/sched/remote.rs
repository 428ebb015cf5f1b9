//! The half of a worker that other threads may touch.

use crate::observe::{Counters, Pulse, Recorder};
use crate::queue::{Deque, Injector, Linked, Ring, Slot};
use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use crate::sync::{Arc, Padded, Parker};
use crate::task::{Header, Registry};

/// The half of a worker that others may touch.
pub(crate) struct Remote {
    pub(crate) ring: Ring<Header>,
    pub(crate) slot: Slot<Header>,
    /// Tasks that only this worker may run, woken by others.
    pub(crate) inbox: Injector<Header>,
    /// Jobs of the fork-joins that it is in.
    pub(crate) forks: Deque,
    pub(crate) parker: Padded<Parker>,
    /// Where it sleeps until a latch is set.
    pub(crate) joiner: Padded<Parker>,
    pub(crate) counters: Padded<Counters>,
    pub(crate) pulse: Padded<Pulse>,
    pub(crate) recorder: Recorder,
    pub(crate) registry: Arc<Registry>,
    pub(crate) interval: AtomicU32,
    /// A thief took something since this worker last asked.
    pub(crate) robbed: AtomicBool,
    /// The same for jobs.
    pub(crate) forks_robbed: AtomicBool,
    /// The longest poll the watchdog saw.
    pub(crate) stalled_ns: AtomicU64,
}

impl Remote {
    pub(crate) fn new() -> Remote {
        Remote {
            ring: Ring::new(),
            slot: Slot::default(),
            inbox: Injector::default(),
            forks: Deque::new(),
            parker: Padded(Parker::new()),
            joiner: Padded(Parker::new()),
            counters: Padded::default(),
            pulse: Padded::default(),
            recorder: Recorder::default(),
            registry: Registry::new(),
            interval: AtomicU32::new(0),
            robbed: AtomicBool::new(false),
            forks_robbed: AtomicBool::new(false),
            stalled_ns: AtomicU64::new(0),
        }
    }
}

impl Linked for Header {
    fn link(&self) -> &AtomicPtr<Header> {
        &self.link
    }
}

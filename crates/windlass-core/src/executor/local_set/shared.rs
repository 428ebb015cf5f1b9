//! The half of a local set that other threads may touch.

use std::collections::VecDeque;
use std::task::Waker;

use super::current::is_running;
use crate::queue::{Closed, Injector};
use crate::sync::{Arc, Mutex, UnsafeCell};
use crate::task::{Entry, Header};

/// The half of a local set that other threads may touch.
pub(crate) struct LocalShared {
    pub(super) inbox: Injector<Header>,
    pub(super) waker: Mutex<Option<Waker>>,
    /// Only touched while this set is the current one, which is on the home thread only.
    queue: UnsafeCell<VecDeque<Entry>>,
}

// SAFETY: `queue` is confined to the home thread (see there); the rest is shared by design.
unsafe impl Send for LocalShared {}
// SAFETY: as above.
unsafe impl Sync for LocalShared {}

impl LocalShared {
    pub(super) fn new() -> LocalShared {
        LocalShared {
            inbox: Injector::default(),
            waker: Mutex::new(None),
            queue: UnsafeCell::new(VecDeque::new()),
        }
    }

    /// Queues a task of a set.
    ///
    /// # Safety
    /// Rule 6: `shared` is the task's set and `entry` has not been queued yet.
    pub(crate) unsafe fn submit(shared: *const LocalShared, entry: Entry) {
        if is_running(shared) {
            // SAFETY: rule 6: alive; and we are on the home thread while the set runs.
            unsafe { &*shared }.push_here(entry);
            return;
        }
        // SAFETY: rule 6: the set waits for this task, so it is alive now; from here on our own
        // count keeps it.
        let shared = unsafe {
            Arc::increment_strong_count(shared);
            Arc::from_raw(shared)
        };
        // SAFETY: rule 1: the entry is ours to queue.
        if let Err(Closed(item)) = unsafe { shared.inbox.push(entry.into_raw()) } {
            // SAFETY: a closed queue gives the entry back. The set closes its inbox only when none
            // of its tasks is left, so nothing comes here; leak rather than drop on this thread.
            let _ = unsafe { Entry::from_raw(item) };
            debug_assert!(false, "a task outlived its local set");
            return;
        }
        shared.wake_home();
    }

    /// Asks the home thread to run the set.
    fn wake_home(&self) {
        // Taken out first: no lock is held while waking.
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Only while this set is the current one.
    pub(super) fn push_here(&self, entry: Entry) {
        // SAFETY: confined to the home thread, and no other access is active: entries are run
        // outside of the closure.
        self.queue
            .with_mut(|queue| unsafe { (*queue).push_back(entry) });
    }

    /// Only while this set is the current one.
    pub(super) fn pop_here(&self) -> Option<Entry> {
        // SAFETY: as in `push_here`.
        self.queue.with_mut(|queue| unsafe { (*queue).pop_front() })
    }
}

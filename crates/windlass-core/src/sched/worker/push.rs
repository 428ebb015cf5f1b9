//! Where the tasks of a worker go: its slot, its ring, the injector.

use super::Worker;
use crate::observe::EventKind;
use crate::task::{Entry, TaskId};

impl Worker {
    /// The id of the next task with a name or class that this worker spawns.
    pub(crate) fn next_id(&self) -> TaskId {
        let number = self.numbered.get() + 1;
        self.numbered.set(number);
        TaskId::numbered(self.index as u16 + 1, number)
    }

    /// Queues a new task.
    #[inline]
    pub(crate) fn spawn(&self, entry: Entry) {
        let remote = self.remote();
        let spawned = self.spawned.get() + 1;
        self.spawned.set(spawned);
        remote.counters.submitted.one();
        if spawned & self.sample_mask.get() == 0 {
            self.record_frequent(EventKind::Spawn, entry.header().id().get());
        }
        if !entry.header().state().is_ordinary() {
            return self.pool.inject(entry);
        }
        match remote.slot.put(entry.into_raw()) {
            None if remote.ring.is_empty() => self.announce_lone(),
            None => self.announce(),
            Some(displaced) => {
                // SAFETY: rule 1: the slot owned the entry and has handed it over.
                self.push_tail(unsafe { Entry::from_raw(displaced) });
                self.announce();
            }
        }
    }

    /// Queues a task that was woken on this worker: next, and without notifying a worker unless
    /// that displaces another and there is enough to do for two.
    #[inline]
    pub(crate) fn wake(&self, entry: Entry) {
        let remote = self.remote();
        let woken = self.woken.get().wrapping_add(1);
        self.woken.set(woken);
        if woken & self.sample_mask.get() == 0 {
            self.record_frequent(EventKind::Wake, entry.header().id().get());
        }
        if !entry.header().state().is_ordinary() {
            return self.push_unusual(entry);
        }
        if let Some(displaced) = remote.slot.put(entry.into_raw()) {
            // SAFETY: rule 1: the slot owned the entry and has handed it over.
            self.push_tail(unsafe { Entry::from_raw(displaced) });
            if self.pool.idle.worth_announcing() && self.is_worth_a_wake() {
                self.pool.announce();
            }
        }
    }

    /// Queues a task at the ring's tail.
    #[inline]
    pub(super) fn push_tail(&self, entry: Entry) {
        if !entry.header().state().is_ordinary() {
            return self.push_unusual(entry);
        }
        if let Err(item) = self.remote().ring.push(entry.into_raw()) {
            // SAFETY: rule 1: the ring did not take the entry.
            self.overflow(unsafe { Entry::from_raw(item) });
        }
    }

    /// Queues a task that is of another class than normal, or pinned.
    #[inline(never)]
    fn push_unusual(&self, entry: Entry) {
        if entry.header().state().pinned_to() == Some(self.index) {
            self.push_pinned(entry);
        } else {
            self.pool.inject(entry);
        }
    }

    /// Half the ring and the newcomer move to the injector, as one batch.
    #[cold]
    fn overflow(&self, entry: Entry) {
        let remote = self.remote();
        let mut batch = remote.ring.take_half().unwrap_or_default();
        // SAFETY: rule 1: we own the entry and give it to the batch.
        unsafe { batch.push(entry.into_raw()) };
        remote.counters.overflows.one();
        remote
            .recorder
            .record(EventKind::Overflow, batch.len() as u64);
        self.pool.inject_batch(batch);
    }
}

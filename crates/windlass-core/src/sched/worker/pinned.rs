//! Tasks that have begun on this worker and go on nowhere else.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::Worker;
use crate::sync::hint;
use crate::task::state::Home;
use crate::task::{Body, Class, Entry, Options, Residence, allocate};

/// Tasks that have begun here and go on nowhere else. Others leave them in the `Remote`'s inbox.
#[derive(Default)]
pub(super) struct Pinned {
    pub(super) ready: RefCell<VecDeque<Entry>>,
    /// Whether `ready` has something, at hand for every look.
    pub(super) any: Cell<bool>,
    /// Whose turn it is when there are both these and others.
    pub(super) turn: Cell<bool>,
    /// Tasks that have begun and not ended.
    pub(super) alive: Cell<usize>,
}

impl Worker {
    /// Tasks are ready that only this worker may run. `take_local` sees it by the limit.
    pub(super) fn has_pinned(&self) -> bool {
        self.pinned.any.get()
    }

    pub(super) fn set_has_pinned(&self, any: bool) {
        self.pinned.any.set(any);
        self.slot_limit
            .set(if any { 0 } else { self.policy.slot_polls });
    }

    pub(super) fn take_pinned(&self) -> Option<Entry> {
        let mut ready = self.pinned.ready.borrow_mut();
        let entry = ready.pop_front();
        match ready.front() {
            // Its turn comes soon, and its lines are cold.
            Some(next) => hint::prefetch(next.header()),
            None => self.set_has_pinned(false),
        }
        entry
    }

    /// Takes in what others have left for this worker alone.
    #[inline]
    pub(super) fn empty_inbox(&self) {
        if !self.remote().inbox.is_empty() {
            self.empty_inbox_slowly();
        }
    }

    #[cold]
    pub(super) fn empty_inbox_slowly(&self) {
        let home = self.pool.as_home();
        self.remote().inbox.take(usize::MAX, |item| {
            // SAFETY: rule 4: the entry has left the queue and is ours.
            unsafe { item.as_ref() }.set_home(home);
            // SAFETY: rule 1: the queue owned the entry and has handed it over.
            self.push_pinned(unsafe { Entry::from_raw(item) });
        });
    }

    /// Queues a task that is pinned to this worker.
    pub(super) fn push_pinned(&self, entry: Entry) {
        let mut ready = self.pinned.ready.borrow_mut();
        if entry.header().state().class() == Class::High {
            ready.push_front(entry);
        } else {
            ready.push_back(entry);
        }
        self.set_has_pinned(true);
    }

    /// Starts a task that never leaves this worker, and that nothing cancels but force. The body
    /// calls `context::unpin` when it is dropped here. It need not be `Send`, but has to see for
    /// itself whether it is dropped on another thread, with a pool that has ended.
    pub(crate) fn spawn_pinned<B: Body>(&self, body: B) {
        let residence = Residence::new(Home::Pool, self.pool.as_home());
        let id = || self.next_id();
        let entry = allocate(body, residence, id, Options::here(), false);
        let header = entry.header();
        header.state.pin(self.pinned_one() as u16);
        header.hold_open();
        self.push_pinned(entry);
    }

    /// One more task has begun that stays here.
    pub(crate) fn pinned_one(&self) -> usize {
        self.pinned.alive.set(self.pinned.alive.get() + 1);
        self.remote().counters.pinned.add(1);
        self.index
    }

    /// One of them has ended.
    pub(crate) fn unpinned_one(&self) {
        self.pinned.alive.set(self.pinned.alive.get() - 1);
        self.remote().counters.pinned.add(1u64.wrapping_neg());
    }

    /// From the inbox: what others have woken that only this worker may run.
    #[inline]
    pub(super) fn take_left_for_us(&self) -> Option<Entry> {
        self.empty_inbox();
        if self.has_pinned() {
            self.take_pinned()
        } else {
            None
        }
    }
}

//! The half of a local set that its home thread alone touches, and how its tasks get their turns.

use std::cell::Cell;
use std::task::Context;

use super::shared::LocalShared;
use crate::sync::Arc;
use crate::task::state::Home;
use crate::task::{
    BeforeFirstPoll, Body, Class, Entry, Header, JoinHandle, Registry, Residence, RunOutcome,
    Scheduler, Shard, SpawnRequest, TaskId, contain,
};
use crate::tuning::POLLS_PER_TICK;

/// The half of a local set that its home thread alone touches.
pub(super) struct LocalTasks {
    pub(super) shared: Arc<LocalShared>,
    pub(super) shard: Shard,
    spawned: Cell<u64>,
    pub(super) stopping: Cell<bool>,
    /// The thread keeps this set, because of its coroutines.
    pub(super) is_kept: Cell<bool>,
    /// It was dropped while the thread unwound, and has coroutines left.
    pub(super) is_orphan: Cell<bool>,
    /// Its tasks are being ended: one of them may own it.
    pub(super) is_finishing: Cell<bool>,
}

impl LocalTasks {
    pub(super) fn new() -> LocalTasks {
        LocalTasks {
            shared: Arc::new(LocalShared::new()),
            shard: Registry::new().owner(),
            spawned: Cell::new(0),
            stopping: Cell::new(false),
            is_kept: Cell::new(false),
            is_orphan: Cell::new(false),
            is_finishing: Cell::new(false),
        }
    }

    pub(super) fn spawn<B, H>(&self, mut request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
    where
        B: Body + 'static,
        B::Output: 'static,
        H: BeforeFirstPoll,
    {
        self.spawned.set(self.spawned.get() + 1);
        let id = || TaskId::numbered(u16::MAX - 2, self.spawned.get());
        let home = Arc::as_ptr(&self.shared).cast();
        // A set has no classes: its queue is a plain FIFO.
        request.options.class = Class::Normal;
        let (entry, handle) = request.allocate(Residence::new(Home::Local, home), id);
        if self.stopping.get() {
            entry.refuse();
        } else {
            // SAFETY: rule 6: just made, not queued yet.
            unsafe { LocalShared::submit(Arc::as_ptr(&self.shared), entry) };
        }
        handle
    }

    /// Wakes of tasks on other threads wake `cx` from now on.
    pub(super) fn remember_waker(&self, cx: &Context<'_>) {
        let mut there = self.shared.waker.lock();
        if there.as_ref().is_some_and(|w| w.will_wake(cx.waker())) {
            return;
        }
        let old = there.replace(cx.waker().clone());
        // The waker may be user code: not under the lock.
        drop(there);
        contain(|| drop(old));
    }

    pub(super) fn forget_waker(&self) {
        let old = self.shared.waker.lock().take();
        contain(|| drop(old));
    }

    /// The next task that is queued, here or in the inbox.
    pub(super) fn take_ready(&self) -> Option<Entry> {
        self.shared.pop_here().or_else(|| self.take_inbox())
    }

    /// Gives up to a tick's worth of tasks their turn. True: there may be more.
    pub(super) fn tick(&self) -> bool {
        for _ in 0..POLLS_PER_TICK {
            let Some(entry) = self.take_ready() else {
                return false;
            };
            if let RunOutcome::Again(entry) = entry.run(self) {
                self.shared.push_here(entry);
            }
        }
        true
    }

    fn take_inbox(&self) -> Option<Entry> {
        if self.shared.inbox.is_empty() {
            return None;
        }
        self.shared.inbox.take(usize::MAX, |item| {
            // SAFETY: rule 1: the queue owned the entry and has handed it over.
            let entry = unsafe { Entry::from_raw(item) };
            entry.header().set_home(Arc::as_ptr(&self.shared).cast());
            self.shared.push_here(entry);
        });
        self.shared.pop_here()
    }
}

impl Scheduler for LocalTasks {
    fn register(&self, header: &Header) {
        self.shard.register(header);
    }

    fn is_stopping(&self) -> bool {
        self.stopping.get()
    }
}

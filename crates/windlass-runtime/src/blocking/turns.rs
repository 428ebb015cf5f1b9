//! Tasks of the io dispatcher have their turns on blocking threads.

use std::sync::Arc;
use std::time::Duration;

use windlass_core::task::{Entry, Header, RunOutcome, Scheduler, TaskRef};

use super::state::{QueuedJob, Work};
use super::{BlockingPool, from_now};
use crate::handle::Handle;

impl BlockingPool {
    /// The number of the next task of the io dispatcher.
    pub(crate) fn next_task(&self) -> u64 {
        let mut state = self.state.lock();
        state.submitted += 1;
        state.submitted
    }

    /// Notes a task of the io dispatcher until `forget`; false: the pool is closed.
    pub(crate) fn remember(&self, number: u64, task: TaskRef) -> bool {
        let mut state = self.state.lock();
        if !state.closed {
            state.tasks.insert(number, task);
        }
        !state.closed
    }

    /// A task of the io dispatcher has ended.
    pub(crate) fn forget(&self, number: u64) {
        let mut state = self.state.lock();
        let forgotten = state.tasks.remove(&number);
        let was_last = state.closed && state.tasks.is_empty();
        drop(state);
        // Not under the lock.
        drop(forgotten);
        if was_last {
            // Threads of a closed pool wait for it.
            self.work.notify_all();
        }
    }

    /// Queues a turn of a task of the io dispatcher; the task is dropped if no thread can ever run
    /// it.
    pub(crate) fn submit(
        self: &Arc<Self>,
        runtime: &Handle,
        entry: Entry,
        start_within: Option<Duration>,
    ) {
        let mut state = self.state.lock();
        if let Some(thread_slot) = entry.header().state().pinned_to() {
            state.leave_for(thread_slot, entry);
            drop(state);
            // Only one of them can take it.
            return self.work.notify_all();
        }
        let queued = QueuedJob {
            work: Work::Turn(entry),
            start_by: start_within.map(from_now),
        };
        if state.turns >= self.config.max_turns {
            return state.held_back.push_back(queued);
        }
        state.turns += 1;
        state.queue.push_back(queued);
        if self.find_thread(&mut state, runtime).is_err() {
            state.turns -= 1;
            let refused = state.queue.pop_back();
            drop(state);
            if let Some(QueuedJob {
                work: Work::Turn(entry),
                ..
            }) = refused
            {
                entry.refuse();
            }
        }
    }

    /// A task of the io dispatcher has its turn.
    pub(super) fn give_turn(&self, entry: Entry) {
        let pinned = entry.header().state().pinned_to().is_some();
        let again = match entry.run(self) {
            RunOutcome::Again(entry) => Some(entry),
            RunOutcome::Idle | RunOutcome::Complete => None,
        };
        if pinned {
            let mut state = self.state.lock();
            state.turns_had += 1;
            if let Some(entry) = again
                && let Some(thread_slot) = entry.header().state().pinned_to()
            {
                state.leave_for(thread_slot, entry);
            }
        } else {
            self.turn_is_over(again);
        }
    }

    /// The next that was held back may have its turn; one that wants another goes to the tail.
    pub(super) fn turn_is_over(&self, again: Option<Entry>) {
        let mut state = self.state.lock();
        state.turns -= 1;
        state.turns_had += 1;
        if let Some(entry) = again {
            match entry.header().state().pinned_to() {
                // It has begun here.
                Some(thread_slot) => state.leave_for(thread_slot, entry),
                None => state.held_back.push_back(QueuedJob {
                    work: Work::Turn(entry),
                    start_by: None,
                }),
            }
        }
        if state.turns < self.config.max_turns
            && let Some(next) = state.held_back.pop_front()
        {
            // This thread looks at the queue when it is done here.
            state.turns += 1;
            state.queue.push_back(next);
        }
    }
}

/// What a task's turn needs from the thread that gives it.
impl Scheduler for BlockingPool {
    fn register(&self, _header: &Header) {
        // `remember` has noted it.
    }

    fn is_stopping(&self) -> bool {
        self.state.lock().closed
    }
}

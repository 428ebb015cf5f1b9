//! Tasks that no pool has in its register: unconfined ones, and those of a simulated single thread.

use std::collections::HashMap;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_core::task::TaskRef;

use super::guarded::Guarded;
use crate::runtime::Shared;

/// The tasks of a runtime that no pool has in its register.
#[derive(Debug, Default)]
pub(crate) struct UnconfinedTasks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    numbered: u64,
    tasks: HashMap<u64, TaskRef>,
    closed: bool,
}

impl UnconfinedTasks {
    pub(super) fn next_number(&self) -> u64 {
        let mut state = self.0.lock();
        state.numbered += 1;
        state.numbered
    }

    /// False: the runtime is shutting down.
    pub(super) fn remember(&self, number: u64, task: TaskRef) -> bool {
        let mut state = self.0.lock();
        if !state.closed {
            state.tasks.insert(number, task);
        }
        !state.closed
    }

    fn forget(&self, number: u64) {
        let forgotten = self.0.lock().tasks.remove(&number);
        // Not under the lock.
        drop(forgotten);
    }

    /// Cancels them all; those that are idle are queued where this thread is.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.closed = true;
        let tasks: Vec<TaskRef> = state.tasks.values().cloned().collect();
        drop(state);
        tasks.iter().for_each(TaskRef::cancel);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().tasks.len()
    }
}

/// Keeps a task in its runtime's list. Dropped together with the task's body.
pub(super) struct Listing {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.shared.unconfined.forget(self.number);
    }
}

/// Wraps a body so that its task leaves the list when the body is dropped.
pub(super) fn listed<B>(body: B, shared: Arc<Shared>, number: u64) -> Guarded<B, Listing> {
    Guarded::new(body, Listing { shared, number })
}

//! Tasks that no pool has in its register: unconfined ones, and those of a simulated single thread.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use windlass_core::sync::Mutex;
use windlass_core::task::{Body, Ending, TaskRef};

use crate::runtime::Shared;

/// What a runtime knows of them.
#[derive(Debug, Default)]
pub(crate) struct Strays(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    numbered: u64,
    tasks: HashMap<u64, TaskRef>,
    closed: bool,
}

impl Strays {
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

pin_project! {
    /// A body that its runtime knows of until it is dropped.
    pub(super) struct Known<B> {
        #[pin]
        body: B,
        note: Note,
    }
}

struct Note {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Note {
    fn drop(&mut self) {
        self.shared.strays.forget(self.number);
    }
}

impl<B> Known<B> {
    pub(super) fn new(body: B, shared: Arc<Shared>, number: u64) -> Known<B> {
        Known {
            body,
            note: Note { shared, number },
        }
    }
}

impl<B: Body> Body for Known<B> {
    type Output = B::Output;

    fn resume(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<B::Output> {
        self.project().body.resume(cx)
    }

    fn ending(&self) -> Ending {
        self.body.ending()
    }
}

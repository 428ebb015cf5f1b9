//! A single thread in a simulation: the simulated worker, one task after another in their order.

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_core::executor::external::{Executor, ExternalExecutor};
use windlass_core::sync::Mutex;
use windlass_core::task::{
    BeforeFirstPoll, Body, Entry, FutureBody, Header, JoinHandle, Options, RunOutcome, Scheduler,
    SpawnRequest,
};

use super::unconfined_tasks::listed;
use crate::handle::Handle;
use crate::task;

/// Everything that is ready, in order, and one task of the simulation that runs it.
#[derive(Clone)]
pub(super) struct Serial {
    line: Arc<Line>,
    executor: Arc<ExternalExecutor>,
}

struct Line {
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Entry>,
    /// The task that runs them is there.
    attended: bool,
}

struct At(Arc<Line>);

impl Executor for At {
    fn submit(&self, entry: Entry) {
        let mut state = self.0.state.lock();
        state.ready.push_back(entry);
        if std::mem::replace(&mut state.attended, true) {
            return;
        }
        drop(state);
        let line = self.0.clone();
        let attend = async move {
            while let Some(entry) = line.next() {
                if let RunOutcome::Again(entry) = entry.run(&InOrder) {
                    line.state.lock().ready.push_back(entry);
                }
                task::yield_now().await;
            }
        };
        let request = SpawnRequest::new(FutureBody(attend), Options::here());
        drop(self.0.runtime.spawn_request(request));
    }
}

impl Line {
    fn next(&self) -> Option<Entry> {
        let mut state = self.state.lock();
        let next = state.ready.pop_front();
        state.attended = next.is_some();
        next
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let left = std::mem::take(&mut self.state.lock().ready);
        left.into_iter().for_each(Entry::refuse);
    }
}

struct InOrder;

impl Scheduler for InOrder {
    fn register(&self, _header: &Header) {}

    fn is_stopping(&self) -> bool {
        false
    }
}

impl Serial {
    pub(super) fn new(runtime: Handle) -> Serial {
        let line = Arc::new(Line {
            runtime,
            state: Mutex::default(),
        });
        Serial {
            executor: ExternalExecutor::new(At(line.clone())),
            line,
        }
    }

    pub(super) fn spawn<B, H>(&self, request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        let shared = self.line.runtime.shared();
        let number = shared.unconfined.next_number();
        let request = request
            .map_body(|body| listed(body, shared.clone(), number))
            .numbered(true);
        let (entry, handle) = self.executor.make(request, number);
        if shared.unconfined.remember(number, entry.task()) {
            self.executor.submit(entry);
        } else {
            entry.refuse();
        }
        handle
    }
}

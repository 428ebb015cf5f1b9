//! The io dispatcher: tasks on the blocking pool's threads.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use windlass_core::executor::external::{Executor, ExternalExecutor};
use windlass_core::task::{BeforeFirstPoll, Body, Entry, JoinHandle, SpawnRequest};

use super::guarded::Guarded;
use crate::blocking::BlockingPool;
use crate::handle::Handle;
use crate::runtime::Shared;

/// The io dispatcher of a runtime, made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct IoDispatcher(OnceLock<Arc<ExternalExecutor>>);

/// Where woken tasks go.
struct Threads(Weak<Shared>);

impl Executor for Threads {
    fn submit(&self, entry: Entry) {
        match self.0.upgrade() {
            Some(shared) => {
                let runtime = Handle::new(shared);
                runtime.shared().blocking.submit(&runtime, entry, None);
            }
            // The runtime is gone, and with it every thread.
            None => entry.refuse(),
        }
    }
}

pub(super) fn spawn<B, H>(
    runtime: &Handle,
    request: SpawnRequest<B, H>,
    start_within: Option<Duration>,
) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
    H: BeforeFirstPoll,
{
    let shared = runtime.shared();
    shared.process.check();
    if shared.simulator().is_some() {
        // A simulation has one thread, and nothing in it blocks.
        return runtime.spawn_request(request);
    }
    let executor = shared
        .io
        .0
        .get_or_init(|| ExternalExecutor::new(Threads(Arc::downgrade(shared))));
    let number = shared.blocking.next_task();
    let listing = Listing {
        pool: shared.blocking.clone(),
        number,
    };
    let request = request.map_body(|body| Guarded::new(body, listing));
    let (entry, handle) = executor.make(request, number);
    if shared.blocking.remember(number, entry.task()) {
        shared.blocking.submit(runtime, entry, start_within);
    } else {
        entry.refuse();
    }
    handle
}

/// Keeps a task in the blocking pool's list. Dropped together with the task's body.
struct Listing {
    pool: Arc<BlockingPool>,
    number: u64,
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.pool.forget(self.number);
    }
}

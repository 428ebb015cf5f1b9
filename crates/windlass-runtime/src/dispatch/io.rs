//! The io dispatcher: tasks on the blocking pool's threads.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use windlass_core::external_executor::{Executor, ExternalExecutor};
use windlass_core::task::{Body, Entry, JoinHandle, Options};

use super::guarded::Guarded;
use crate::blocking::BlockingPool;
use crate::handle::Handle;
use crate::runtime::Shared;

/// Made when somebody first asks for it.
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

pub(super) fn spawn<B>(
    runtime: &Handle,
    body: B,
    options: Options,
    start_within: Option<Duration>,
    know: impl FnOnce(&Entry),
) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
{
    let shared = runtime.shared();
    shared.process.check();
    if shared.simulator().is_some() {
        // A simulation has one thread, and nothing in it blocks.
        return runtime.spawn_body_known(body, options, know);
    }
    let executor = shared
        .io
        .0
        .get_or_init(|| ExternalExecutor::new(Threads(Arc::downgrade(shared))));
    let number = shared.blocking.next_task();
    let note = Note {
        pool: shared.blocking.clone(),
        number,
    };
    let body = Guarded::new(body, note);
    let (entry, handle) = executor.make(body, number, options);
    know(&entry);
    if shared.blocking.remember(number, entry.task()) {
        shared.blocking.submit(runtime, entry, start_within);
    } else {
        entry.refuse();
    }
    handle
}

/// The blocking pool knows of a task until this is dropped, with its body.
struct Note {
    pool: Arc<BlockingPool>,
    number: u64,
}

impl Drop for Note {
    fn drop(&mut self) {
        self.pool.forget(self.number);
    }
}

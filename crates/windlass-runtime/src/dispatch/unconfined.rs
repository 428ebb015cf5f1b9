//! The unconfined dispatcher: no thread of its own.

use windlass_core::executor::external;
use windlass_core::task::{BeforeFirstPoll, Body, Entry, JoinHandle, SpawnRequest};

use super::unconfined_tasks::listed;
use crate::handle::Handle;

/// On a thread that is no worker a woken task goes to the runtime the thread is in, or to the
/// default.
fn to_default(entry: Entry) {
    Handle::current_or_default().shared().pool.adopt(entry);
}

pub(super) fn spawn<B, H>(runtime: &Handle, request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
    H: BeforeFirstPoll,
{
    external::set_fallback(to_default);
    let shared = runtime.shared();
    shared.process.check();
    let number = shared.unconfined.next_number();
    let request = request
        .map_body(|body| listed(body, shared.clone(), number))
        .numbered(shared.simulator().is_some());
    external::spawn_unconfined(request, number, |entry| {
        shared.unconfined.remember(number, entry.task())
    })
}

//! The unconfined dispatcher: no thread of its own.

use windlass_core::external_executor;
use windlass_core::task::{Body, Entry, JoinHandle, Options};

use super::unconfined_tasks::known;
use crate::handle::Handle;

/// On a thread that is no worker a woken task goes to the runtime the thread is in, or to the default.
fn to_default(entry: Entry) {
    Handle::current_or_default().shared().pool.adopt(entry);
}

pub(super) fn spawn<B>(
    runtime: &Handle,
    body: B,
    options: Options,
    know: impl FnOnce(&Entry),
) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
{
    external_executor::set_fallback(to_default);
    let shared = runtime.shared();
    shared.process.check();
    let number = shared.unconfined.next_number();
    let body = known(body, shared.clone(), number);
    let options = Options {
        numbered: shared.simulator().is_some(),
        ..options
    };
    external_executor::spawn_unconfined(body, number, options, |entry| {
        know(entry);
        shared.unconfined.remember(number, entry.task())
    })
}

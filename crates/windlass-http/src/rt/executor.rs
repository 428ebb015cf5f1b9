//! Where hyper's own tasks run.

use std::future::Future;

use windlass_runtime::spawn;

/// Runs what hyper spawns on the runtime this thread is in, or else on the process-wide default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Executor;

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        drop(spawn(future));
    }
}

//! What a runtime counts, as far as tokio promises it without unstable options.

use windlass_runtime::Handle;

/// What a runtime counts.
#[derive(Debug, Clone)]
pub struct RuntimeMetrics(Handle);

impl RuntimeMetrics {
    pub(super) fn of(handle: Handle) -> RuntimeMetrics {
        RuntimeMetrics(handle)
    }

    /// Returns the number of workers.
    pub fn num_workers(&self) -> usize {
        self.0.snapshot().pool.workers.len()
    }

    /// Returns the number of tasks that wait in the queue for work from outside.
    pub fn global_queue_depth(&self) -> usize {
        self.0.snapshot().pool.injector_len
    }
}

//! How components are invoked: in the task of the run, on threads, ahead, beside the epochs.

pub(crate) mod active_workers;
pub(crate) mod async_loop;
pub(crate) mod calls;
pub(crate) mod driver_thread;
pub(crate) mod flight;
pub(crate) mod grants;
pub(crate) mod inline;
pub(crate) mod job_queue;
pub(crate) mod loop_passes;
pub(crate) mod memory_lock;
pub(crate) mod overlap;
pub(crate) mod pool;
pub(crate) mod thread_attributes;
pub(crate) mod timeout;
pub(crate) mod under_way;

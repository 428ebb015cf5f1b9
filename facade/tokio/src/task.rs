//! Tasks: spawning, joining, yielding, task-locals.

pub mod coop;
pub mod join_set;
mod local_set;

use std::future::Future;

use crate::runtime::Handle;

pub use self::coop::{Unconstrained, consume_budget, unconstrained};
#[doc(inline)]
pub use self::join_set::JoinSet;
pub use self::local_set::{LocalEnterGuard, LocalSet, spawn_local};
pub use windlass_core::task::{AbortHandle, JoinError, JoinHandle, TaskId as Id};
pub use windlass_runtime::LocalKey;
pub use windlass_runtime::task::{block_in_place, id, try_id, yield_now};

/// Futures that a caller may want to name.
pub mod futures {
    pub use windlass_runtime::TaskLocalFuture;
}

/// Starts a task on the runtime this thread is in.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Handle::current().spawn(future)
}

/// Runs a closure that may block on a thread of its own kind.
///
/// # Panics
/// Outside of a runtime.
#[track_caller]
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Handle::current().spawn_blocking(f)
}

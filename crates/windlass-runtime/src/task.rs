//! Tasks: names, classes, yielding.

use std::future::Future;
use std::time::Duration;

use windlass_core::task::{FutureBody, JoinHandle, Options, SpawnRequest};

use crate::blocking::SpawnBlockingError;
use crate::handle::{Handle, TrySpawnError};

pub use crate::coop;
pub use crate::coop::{consume_budget, unconstrained};
pub use crate::join_set::JoinSet;

pub use windlass_core::executor::local_set::{LocalEnterGuard, LocalSet, spawn_local};
pub use windlass_core::task::{
    AbortHandle, Budget, Class, JoinError, JoinErrorKind, Shield, TaskId as Id, shield, yield_now,
};

/// Runs `f`, which may block this thread; another worker takes this one's place meanwhile. Inside
/// of it `block_on` is allowed, of this runtime's handle too.
///
/// What else the task does at the same time (other branches of a `join!`) waits, and so do
/// coroutines that have begun on this worker. On a thread that is no worker `f` just runs. Where it
/// happens often [`spawn_blocking`](crate::spawn_blocking) is cheaper: here a thread starts and
/// ends each time.
///
/// A runtime has a limited number of workers for this: `Builder::max_workers`, and some spare ones.
/// Tasks that block beyond it and wait for other tasks of the same runtime wait for ever;
/// `PoolSnapshot::blocked_without_spare` counts them.
///
/// # Panics
/// In a current-thread runtime, which has no other worker.
#[track_caller]
pub fn block_in_place<T>(f: impl FnOnce() -> T) -> T {
    windlass_core::block_in_place(f)
}

/// Returns the id of the task that is running here.
///
/// # Panics
/// Outside of a task.
#[track_caller]
pub fn id() -> Id {
    match try_id() {
        Some(id) => id,
        None => panic!("Can't get a task id when not inside a task"),
    }
}

/// Returns the id of the task that is running here; none outside of a task.
pub fn try_id() -> Option<Id> {
    windlass_core::context::current_task().map(|task| task.header().id())
}

/// True if the running task has been cancelled and no shield holds that back; false outside tasks.
pub fn is_cancelled() -> bool {
    windlass_core::context::current_task()
        .is_some_and(|task| task.header().state().cancel_applies())
}

/// Spawns with a name, a class, or a deadline to start.
///
/// ```
/// use windlass_runtime::{Runtime, task};
///
/// let runtime = Runtime::new()?;
/// let sum = task::Builder::new()
///     .name("sum")
///     .class(task::Class::High)
///     .spawn_on(runtime.handle(), async { (1..=10).sum::<u32>() });
/// assert_eq!(runtime.block_on(sum).unwrap(), 55);
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until spawn is called"]
pub struct Builder {
    options: Options,
    start_within: Option<Duration>,
}

impl Default for Builder {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// Normal class, no name.
    #[track_caller]
    pub fn new() -> Builder {
        Builder {
            options: Options::here(),
            start_within: None,
        }
    }

    /// A name for dumps, traces and stall reports.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.options.name = Some(name.as_ref().into());
        self
    }

    /// The priority class. Blocking closures and local tasks have none.
    pub fn class(mut self, class: Class) -> Self {
        self.options.class = class;
        self
    }

    /// Blocking closures only: if no thread is free within `limit`, the closure is not run and its
    /// handle resolves with `Expired`, when its turn comes.
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.start_within = Some(limit);
        self
    }

    /// Starts a task on the runtime this thread is in, or else on the process-wide default.
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_on(&Handle::current_or_default(), future)
    }

    /// Starts a task on `handle`'s runtime.
    pub fn spawn_on<F>(self, handle: &Handle, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        handle.spawn_with(future, self.options)
    }

    /// Starts a task as `spawn_on` does, unless the injector is full.
    pub fn try_spawn_on<F>(
        self,
        handle: &Handle,
        future: F,
    ) -> Result<JoinHandle<F::Output>, TrySpawnError<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        handle.try_spawn_with(future, self.options)
    }

    /// Runs a closure that may block on `handle`'s runtime.
    pub fn spawn_blocking_on<T, F>(
        self,
        handle: &Handle,
        f: F,
    ) -> Result<JoinHandle<T>, SpawnBlockingError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        handle.spawn_blocking_with(f, self.options, self.start_within)
    }

    /// Starts a `!Send` task on `set`.
    pub fn spawn_local_on<F>(self, set: &LocalSet, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        set.spawn_request(SpawnRequest::new(FutureBody(future), self.options))
    }
}

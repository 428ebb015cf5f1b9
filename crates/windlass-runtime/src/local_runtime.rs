//! A runtime at home on one thread: a runtime without workers, and a local set.

use std::future::Future;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use windlass_core::executor::local_set::LocalSet;
use windlass_core::task::JoinHandle;

use crate::builder::Builder;
use crate::handle::{EnterGuard, Handle};
use crate::runtime::{Runtime, ShutdownReport};

/// The options of a [`LocalRuntime`]; there are none yet.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LocalOptions {}

/// A runtime whose tasks, sockets and timers are served by the thread in
/// [`block_on`](LocalRuntime::block_on), and which also takes futures that cannot be sent to other
/// threads: [`task::spawn_local`](crate::task::spawn_local) works everywhere in it.
///
/// ```
/// use std::rc::Rc;
/// use windlass_runtime::{LocalRuntime, task};
///
/// let runtime = LocalRuntime::new()?;
/// let shared = Rc::new(7);
/// let own = shared.clone();
/// let sum = runtime.block_on(async move { task::spawn_local(async move { *own + 1 }).await });
/// assert_eq!((sum.unwrap(), *shared), (8, 7));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Dropping it drops the local tasks first, and then ends the runtime.
#[derive(Debug)]
pub struct LocalRuntime {
    // Dropped first: its tasks may use the runtime.
    local: LocalSet,
    runtime: Runtime,
}

impl Builder {
    /// Starts a runtime that is at home on this thread.
    pub fn build_local(&mut self, _options: LocalOptions) -> io::Result<LocalRuntime> {
        Ok(LocalRuntime {
            local: LocalSet::new(),
            runtime: self.build()?,
        })
    }
}

impl LocalRuntime {
    /// Starts a runtime that is at home on this thread.
    pub fn new() -> io::Result<LocalRuntime> {
        Builder::new_current_thread().build_local(LocalOptions::default())
    }

    /// Returns the runtime's handle.
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Starts a task on this thread. It runs inside of [`block_on`](LocalRuntime::block_on).
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.local.spawn_local(future)
    }

    /// Runs a closure that may block on a thread of its own kind.
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.runtime.spawn_blocking(f)
    }

    /// Runs `future` and all tasks on this thread.
    ///
    /// # Panics
    /// Inside a task or another `block_on`.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        // For the tasks of the runtime, which run beside the set and not in it.
        let _set = self.local.enter();
        self.runtime.block_on(self.local.run_until(future))
    }

    /// Makes this runtime the one that `spawn` and `spawn_local` find on this thread, until the
    /// guard is dropped.
    pub fn enter(&self) -> EnterGuard {
        self.runtime.enter().with_set(self.local.enter())
    }

    /// Drops the local tasks and ends the runtime within `limit`; reports what did not stop.
    pub fn shutdown(self, limit: Duration) -> ShutdownReport {
        drop(self.local);
        self.runtime.shutdown(limit)
    }

    /// As [`shutdown`](LocalRuntime::shutdown), without the report.
    pub fn shutdown_timeout(self, limit: Duration) {
        drop(self.local);
        self.runtime.shutdown_timeout(limit);
    }

    /// Drops the local tasks, and ends the runtime without waiting.
    pub fn shutdown_background(self) {
        drop(self.local);
        self.runtime.shutdown_background();
    }
}

// A runtime holds no value of the program that a panic could leave half changed.
impl UnwindSafe for LocalRuntime {}
impl RefUnwindSafe for LocalRuntime {}

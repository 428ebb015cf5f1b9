//! A runtime at home on one thread: a runtime with one worker, and a local set.

use std::future::Future;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use super::{Builder, EnterGuard, Handle, Runtime, RuntimeMetrics};
use crate::task::{JoinHandle, LocalSet};

/// The options of a [`LocalRuntime`]; there are none.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LocalOptions {}

/// A runtime that also takes futures that cannot be sent to other threads.
#[derive(Debug)]
pub struct LocalRuntime {
    // Dropped first: its tasks may use the runtime.
    local: LocalSet,
    runtime: Runtime,
}

impl LocalRuntime {
    /// Starts a runtime that is at home on this thread.
    pub fn new() -> io::Result<LocalRuntime> {
        let mut builder = Builder::new_current_thread();
        builder.enable_all().build_local(LocalOptions::default())
    }

    pub(super) fn of(runtime: Runtime) -> LocalRuntime {
        LocalRuntime {
            local: LocalSet::new(),
            runtime,
        }
    }

    /// Returns the runtime's handle.
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Starts a task on this thread. It runs inside of `block_on`.
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
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.runtime.spawn_blocking(f)
    }

    /// Runs `future` and the local tasks on this thread.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _set = self.local.enter();
        self.local.block_on(&self.runtime, future)
    }

    /// Makes this runtime the one that `spawn` finds on this thread.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter().with_set(self.local.enter())
    }

    /// Ends the runtime; gives tasks and blocking closures at most `time`.
    pub fn shutdown_timeout(self, time: Duration) {
        drop(self.local);
        self.runtime.shutdown_timeout(time);
    }

    /// Ends the runtime without waiting.
    pub fn shutdown_background(self) {
        drop(self.local);
        self.runtime.shutdown_background();
    }

    /// Returns what the runtime counts.
    pub fn metrics(&self) -> RuntimeMetrics {
        self.runtime.metrics()
    }
}

// A runtime holds no value of the program that a panic could leave half changed.
impl UnwindSafe for LocalRuntime {}
impl RefUnwindSafe for LocalRuntime {}

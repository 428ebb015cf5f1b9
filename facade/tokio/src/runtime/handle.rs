//! Handles of runtimes.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use super::{RuntimeFlavor, RuntimeMetrics, flavor};
use crate::task::JoinHandle;

/// The text of tokio, which programs look for.
const NO_RUNTIME: &str =
    "there is no reactor running, must be called from the context of a Tokio 1.x runtime";

/// A handle of a runtime.
#[derive(Debug, Clone)]
pub struct Handle(windlass_runtime::Handle);

/// A thread that is inside of a runtime; made by `enter`.
#[derive(Debug)]
#[must_use = "the thread leaves the runtime when the guard is dropped"]
pub struct EnterGuard<'a> {
    _entered: windlass_runtime::EnterGuard,
    handle: PhantomData<&'a Handle>,
}

/// The thread is not inside of a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TryCurrentError(());

impl TryCurrentError {
    /// Returns true: the thread is in no runtime.
    pub fn is_missing_context(&self) -> bool {
        true
    }

    /// Returns false: a thread that ends has left every runtime.
    pub fn is_thread_local_destroyed(&self) -> bool {
        false
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NO_RUNTIME)
    }
}

impl std::error::Error for TryCurrentError {}

impl Handle {
    pub(super) fn of(handle: windlass_runtime::Handle) -> Handle {
        Handle(handle)
    }

    /// Returns the runtime this thread is in.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn current() -> Handle {
        match Handle::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the runtime this thread is in, if there is one.
    pub fn try_current() -> Result<Handle, TryCurrentError> {
        let handle = windlass_runtime::Handle::try_current();
        handle.map(Handle).map_err(|_| TryCurrentError(()))
    }

    /// Makes this runtime the one that `spawn` finds on this thread.
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard {
            _entered: self.0.enter(),
            handle: PhantomData,
        }
    }

    /// Starts a task.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.spawn(future)
    }

    /// Runs a closure that may block on a thread of its own kind.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.0.spawn_blocking(f)
    }

    /// Runs `future` on this thread, which sleeps while the future is pending.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.block_on(future)
    }

    /// Returns the kind of the runtime.
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        flavor::get(&self.0)
    }

    /// Returns what the runtime counts.
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::of(self.0.clone())
    }

    /// Returns true if the clock of the runtime is virtual.
    pub(crate) fn is_paused(&self) -> bool {
        self.0.is_simulated()
    }
}

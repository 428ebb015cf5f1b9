//! Handles of runtimes.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use super::identity::Identity;
use super::{Id, RuntimeFlavor, RuntimeMetrics};
use crate::task::{JoinHandle, LocalEnterGuard};

/// The text of tokio, which programs look for.
const NO_RUNTIME: &str =
    "there is no reactor running, must be called from the context of a Tokio 1.x runtime";

/// A handle of a runtime.
#[derive(Debug, Clone)]
pub struct Handle {
    handle: windlass_runtime::Handle,
    identity: Arc<Identity>,
}

// A handle holds no value of the program that a panic could leave half changed.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

/// A thread that is inside of a runtime; made by `enter`.
#[derive(Debug)]
#[must_use = "the thread leaves the runtime when the guard is dropped"]
pub struct EnterGuard<'a> {
    _local: Option<LocalEnterGuard>,
    _entered: windlass_runtime::EnterGuard,
    handle: PhantomData<&'a Handle>,
}

impl EnterGuard<'_> {
    /// The thread is also inside of a local set.
    pub(super) fn with_set(mut self, set: LocalEnterGuard) -> Self {
        self._local = Some(set);
        self
    }
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
    pub(super) fn of(handle: windlass_runtime::Handle, identity: Arc<Identity>) -> Handle {
        Handle { handle, identity }
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
        let handle = windlass_runtime::Handle::try_current().map_err(|_| TryCurrentError(()))?;
        let identity = Identity::of(&handle);
        Ok(Handle { handle, identity })
    }

    /// Makes this runtime the one that `spawn` finds on this thread.
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard {
            _local: None,
            _entered: self.handle.enter(),
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
        self.handle.spawn(future)
    }

    /// Runs a closure that may block on a thread of its own kind.
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle.spawn_blocking(f)
    }

    /// Runs `future` on this thread, which sleeps while the future is pending.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// Returns the kind of the runtime.
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        self.identity.flavor
    }

    /// Returns what tells the runtime from others.
    pub fn id(&self) -> Id {
        self.identity.id
    }

    /// Returns the name of the runtime, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.identity.name.as_deref()
    }

    /// Returns what the runtime counts.
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::of(self.handle.clone())
    }
}

//! Making, finding and ending a runtime.

mod builder;
mod handle;
mod identity;
mod local_runtime;
mod metrics;

use std::future::Future;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use self::identity::Identity;
use crate::task::JoinHandle;

pub use self::builder::Builder;
pub use self::handle::{EnterGuard, Handle, TryCurrentError};
pub use self::identity::{Id, RuntimeFlavor};
pub use self::local_runtime::{LocalOptions, LocalRuntime};
pub use self::metrics::RuntimeMetrics;

/// The name of the thread that drops a runtime in the background.
const BACKGROUND: &str = "tokio-shutdown";

/// A runtime of Windlass; dropped, it is shut down.
#[derive(Debug)]
pub struct Runtime {
    runtime: windlass_runtime::Runtime,
    handle: Handle,
}

impl Runtime {
    /// Starts a multi-threaded runtime with a worker per core.
    pub fn new() -> io::Result<Runtime> {
        Builder::new_multi_thread().enable_all().build()
    }

    fn of(runtime: windlass_runtime::Runtime, identity: Arc<Identity>) -> Runtime {
        // A runtime that is new does not stop, and takes it.
        let _ = runtime.handle().attach(identity.clone());
        let handle = Handle::of(runtime.handle().clone(), identity);
        Runtime { runtime, handle }
    }

    /// Returns the runtime's handle.
    pub fn handle(&self) -> &Handle {
        &self.handle
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

    /// Runs `future` on this thread. The tasks of a current-thread runtime run here meanwhile.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Makes this runtime the one that `spawn` finds on this thread.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Ends the runtime; gives tasks and blocking closures at most `time`.
    pub fn shutdown_timeout(self, time: Duration) {
        let _report = self.runtime.shutdown(time);
    }

    /// Ends the runtime without waiting, also on one of its own threads.
    pub fn shutdown_background(self) {
        let runtime = self.runtime;
        // A thread that cannot be started drops the closure, and with it the runtime.
        let _ = windlass_core::sync::thread::spawn(BACKGROUND.into(), 0, move || drop(runtime));
    }

    /// Returns what the runtime counts.
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle.metrics()
    }
}

// A runtime holds no value of the program that a panic could leave half changed.
impl UnwindSafe for Runtime {}
impl RefUnwindSafe for Runtime {}

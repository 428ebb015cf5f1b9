//! The shim over loom.

pub use loom::cell::UnsafeCell;
pub use loom::thread_local;
pub use std::sync::Arc;

use super::modelled_locks::modelled_locks;

/// Atomics and fences.
pub mod atomic {
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// Hints to the core.
pub mod hint {
    /// Lets another thread of the model go on.
    pub fn spin_loop() {
        loom::hint::spin_loop();
    }

    /// Means nothing to a model.
    pub fn prefetch<T>(_address: *const T) {}
}

/// Threads of the model checker.
pub mod thread {
    pub use loom::thread::{JoinHandle, ThreadId, current, yield_now};

    /// Models do not unwind.
    pub fn panicking() -> bool {
        false
    }

    /// Starts a modelled thread.
    pub fn spawn<T, F>(_name: String, _stack: usize, f: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Ok(loom::thread::spawn(f))
    }

    /// Waits for a thread; a model has no deadlines.
    pub fn join_by<T>(
        thread: JoinHandle<T>,
        _deadline: Option<u64>,
    ) -> Result<std::thread::Result<T>, crate::sync::UnfinishedThread> {
        Ok(thread.join())
    }
}

modelled_locks!(loom);

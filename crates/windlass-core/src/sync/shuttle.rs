//! The shim over shuttle.

pub use shuttle::thread_local;
pub use std::sync::Arc;

use super::modelled_locks::modelled_locks;

/// Atomics and fences.
pub mod atomic {
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// Hints to the core.
pub mod hint {
    /// Lets another thread go on.
    pub fn spin_loop() {
        shuttle::hint::spin_loop();
    }

    /// Means nothing to a model.
    pub fn prefetch<T>(_address: *const T) {}
}

/// Threads of the model checker.
pub mod thread {
    pub use shuttle::thread::{JoinHandle, ThreadId, current, panicking, yield_now};

    /// Starts a thread of the schedule under test.
    pub fn spawn<T, F>(name: String, _stack: usize, f: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        shuttle::thread::Builder::new().name(name).spawn(f)
    }

    /// Waits for a thread; a model has no deadlines.
    pub fn join_by<T>(
        thread: JoinHandle<T>,
        _deadline: Option<u64>,
    ) -> Result<std::thread::Result<T>, crate::sync::UnfinishedThread> {
        Ok(thread.join())
    }
}

modelled_locks!(shuttle, const);

/// A cell with the interface of loom's.
#[derive(Debug)]
pub struct UnsafeCell<T: ?Sized>(#[allow(clippy::disallowed_types)] std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps `value` in a cell.
    #[allow(clippy::disallowed_types)]
    pub const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Returns the value and drops the cell.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Gives shared access; the caller upholds the access protocol of the owner.
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Gives exclusive access; the caller upholds the access protocol of the owner.
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

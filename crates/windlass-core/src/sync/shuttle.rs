//! The shim over shuttle.

pub use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
pub use shuttle::thread_local;
pub use std::sync::Arc;

use std::time::Duration;

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

/// A lock whose hand-over shuttle decides.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Makes a lock around `value`.
    pub const fn new(value: T) -> Self {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// A lock for many readers or one writer whose order shuttle decides.
#[derive(Debug)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Makes a lock around `value`.
    pub const fn new(value: T) -> Self {
        RwLock(shuttle::sync::RwLock::new(value))
    }

    /// Waits until there is no writer.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until there is no reader and no writer.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Reads if there is no writer.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read().ok()
    }
}

/// A condition variable whose order shuttle decides.
#[derive(Debug, Default)]
pub struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    /// Makes a condition variable without waiters.
    pub const fn new() -> Self {
        Condvar(shuttle::sync::Condvar::new())
    }

    /// Waits until notified.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0
            .wait(guard)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until notified: time does not pass under the checker.
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        (self.wait(guard), false)
    }

    /// Notifies one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Notifies all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

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

//! The shim over loom.

pub use loom::cell::UnsafeCell;
pub use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
pub use loom::thread_local;
pub use std::sync::Arc;

use std::time::Duration;

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

/// A modelled lock.
#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Makes a lock around `value`.
    pub fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
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

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

/// A modelled lock for many readers or one writer.
#[derive(Debug)]
pub struct RwLock<T>(loom::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Makes a lock around `value`.
    pub fn new(value: T) -> Self {
        RwLock(loom::sync::RwLock::new(value))
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

/// A modelled condition variable.
#[derive(Debug, Default)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    /// Makes a condition variable without waiters.
    pub fn new() -> Self {
        Condvar(loom::sync::Condvar::new())
    }

    /// Waits until notified.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0
            .wait(guard)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until notified: time does not pass in a model.
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

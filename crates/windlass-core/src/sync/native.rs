//! The shim over the standard library.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "this is the shim")]

pub use std::sync::{Arc, MutexGuard};

use std::time::Duration;

/// Atomics and fences.
pub mod atomic {
    pub use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

/// Hints to the core.
pub mod hint {
    pub use std::hint::spin_loop;
}

/// Threads.
pub mod thread {
    pub use std::thread::{JoinHandle, ThreadId, current, panicking, yield_now};

    /// Starts a named OS thread; `stack` of 0 means the platform's default stack size.
    pub fn spawn<T, F>(name: String, stack: usize, f: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let mut builder = std::thread::Builder::new().name(name);
        if stack > 0 {
            builder = builder.stack_size(stack);
        }
        builder.spawn(f)
    }
}

/// A lock without poisoning: engine data is consistent at every point that can unwind.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Makes a lock around `value`.
    pub const fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes the lock if nobody holds it; never blocks.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// Makes one.
    pub const fn new() -> Self {
        Condvar(std::sync::Condvar::new())
    }

    /// Waits until told.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until told, or until `limit` has passed: for deadlines that a user set, for retiring
    /// an idle thread and for the watchdog; never to look whether a wake-up was lost.
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, result) =
            self.0.wait_timeout(guard, limit).unwrap_or_else(|poisoned| poisoned.into_inner());
        (guard, result.timed_out())
    }

    /// Tells one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Tells all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A cell whose accesses loom can check; here it is the plain one.
#[derive(Debug)]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Gives shared access; the caller upholds the access protocol of the owner.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Gives exclusive access; the caller upholds the access protocol of the owner.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

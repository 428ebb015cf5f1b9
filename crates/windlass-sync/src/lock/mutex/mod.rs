//! A lock that tasks wait for without blocking their worker.

mod mapped_guard;

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use windlass_core::sync::{Arc, UnsafeCell};

pub use self::mapped_guard::{MappedMutexGuard, OwnedMappedMutexGuard};
use super::guard::{Lock, OwnedPermits, guard_traits, narrowing};
use super::{Semaphore, SemaphorePermit};

/// Guards a value; one task at a time has it, in the order in which they came.
///
/// The guard may be held across an await. An unlock hands the lock to the first who waits. A panic
/// while it is held releases it and does not poison it: the next holder sees the value as it was
/// left.
///
/// ```
/// use windlass_sync::lock::Mutex;
///
/// # windlass_core::block_on(async {
/// let balance = Mutex::new(1);
/// *balance.lock().await += 41;
/// assert_eq!(*balance.lock().await, 42);
/// # });
/// ```
pub struct Mutex<T: ?Sized> {
    semaphore: Semaphore,
    value: UnsafeCell<T>,
}

// SAFETY: the one permit of the semaphore is the right to the value; with it the value may be
// used, and dropped, on another thread.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above: only the holder of the permit gets to the value.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A lock around `value`, free.
    pub fn new(value: T) -> Mutex<T> {
        Mutex {
            semaphore: Semaphore::new(1),
            value: UnsafeCell::new(value),
        }
    }

    /// A lock around `value`, free, for a `static`.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_new(value: T) -> Mutex<T> {
        Mutex {
            semaphore: Semaphore::const_new(1),
            value: UnsafeCell::new(value),
        }
    }

    /// Consumes the lock and returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// Cancel-safe: a dropped wait loses its place, and passes on a lock that it was handed.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        // The semaphore is never closed.
        let _ = self.semaphore.wait(1).await;
        MutexGuard::new(self)
    }

    /// Waits for the lock and keeps it alive. Cancel-safe like [`Mutex::lock`].
    pub async fn lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        // The semaphore is never closed.
        let _ = self.semaphore.wait(1).await;
        OwnedMutexGuard::new(self)
    }

    /// Blocks this thread until it has the lock.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        windlass_core::block_on(self.lock())
    }

    /// Blocks this thread until it has the lock, which the guard keeps alive.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        windlass_core::block_on(self.lock_owned())
    }

    /// Takes the lock if it is free and has no waiter.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        match self.semaphore.try_take(1) {
            Ok(()) => Ok(MutexGuard::new(self)),
            Err(_) => Err(TryLockError(())),
        }
    }

    /// Takes the lock and keeps it alive, if it is free and has no waiter.
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        match self.semaphore.try_take(1) {
            Ok(()) => Ok(OwnedMutexGuard::new(self)),
            Err(_) => Err(TryLockError(())),
        }
    }

    /// Returns the value without locking: the borrow proves that there is no other user.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `&mut self`: there is no guard.
        unsafe { &mut *self.value.with_mut(|value| value) }
    }
}

/// The right to a [`Mutex`]'s value; the drop unlocks.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// Send and Sync as a unique borrow of the value is.
    _value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The caller has the permit.
    fn new(mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        MutexGuard {
            mutex,
            _value: PhantomData,
        }
    }

    /// The lock that this is the guard of.
    pub fn mutex(guard: &MutexGuard<'a, T>) -> &'a Mutex<T> {
        guard.mutex
    }

    /// The permit outlives the guard.
    fn into_permit(self) -> SemaphorePermit<'a> {
        let mutex = self.mutex;
        std::mem::forget(self);
        SemaphorePermit::new(&mutex.semaphore, 1)
    }

    narrowing!(unique T => U: MappedMutexGuard<'a, U>, |guard| guard.into_permit());
}

impl<T: ?Sized> Lock for Mutex<T> {
    fn semaphore(&self) -> &Semaphore {
        &self.semaphore
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the one permit.
        unsafe { &*self.mutex.value.with(|value| value) }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the one permit, and is borrowed uniquely.
        unsafe { &mut *self.mutex.value.with_mut(|value| value) }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.semaphore.release(1);
    }
}

/// The right to a [`Mutex`]'s value, which it keeps alive; the drop unlocks.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedMutexGuard<T: ?Sized> {
    permits: OwnedPermits<Mutex<T>>,
    /// Send and Sync as the value is.
    _value: PhantomData<T>,
}

// The value is behind a pointer, and not moved with the guard.
impl<T: ?Sized> Unpin for OwnedMutexGuard<T> {}

impl<T: ?Sized> OwnedMutexGuard<T> {
    /// The caller has the permit.
    fn new(mutex: Arc<Mutex<T>>) -> OwnedMutexGuard<T> {
        OwnedMutexGuard {
            permits: OwnedPermits::new(mutex, 1),
            _value: PhantomData,
        }
    }

    /// The lock that this is the guard of.
    pub fn mutex(guard: &OwnedMutexGuard<T>) -> &Arc<Mutex<T>> {
        guard.permits.lock()
    }

    narrowing!(unique T => U: OwnedMappedMutexGuard<T, U>, |guard| guard.permits);
}

impl<T: ?Sized> Deref for OwnedMutexGuard<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the one permit.
        unsafe { &*self.permits.lock().value.with(|value| value) }
    }
}

impl<T: ?Sized> DerefMut for OwnedMutexGuard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the one permit, and is borrowed uniquely.
        unsafe { &mut *self.permits.lock().value.with_mut(|value| value) }
    }
}

/// The lock could not be had at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TryLockError(pub(super) ());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("operation would block")
    }
}

impl Error for TryLockError {}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => out.field("data", &&*guard),
            Err(_) => out.field("data", &format_args!("<locked>")),
        };
        out.finish()
    }
}

guard_traits!(shown [T: ?Sized] MutexGuard<'_, T> => T);
guard_traits!(shown [T: ?Sized] OwnedMutexGuard<T> => T);

//! A lock for many readers or one writer.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use windlass_core::sync::UnsafeCell;

use super::{Semaphore, TryLockError};

/// A reader takes one of these permits, a writer all of them.
const PERMITS: usize = u32::MAX as usize >> 3;

/// Guards a value for many readers or one writer, in the order in which they came.
///
/// A writer that waits holds up the readers that come after it, so writers are not starved; a task
/// that reads twice at once can therefore deadlock with a writer in between. A panic while it is
/// held releases it and does not poison it.
///
/// ```
/// use windlass_sync::lock::RwLock;
///
/// # windlass_core::block_on(async {
/// let config = RwLock::new(String::from("a"));
/// config.write().await.push('b');
/// let (one, two) = (config.read().await, config.read().await);
/// assert_eq!((one.as_str(), two.as_str()), ("ab", "ab"));
/// # });
/// ```
pub struct RwLock<T: ?Sized> {
    semaphore: Semaphore,
    value: UnsafeCell<T>,
}

// SAFETY: a permit is the right to read, all of them the right to write; with them the value may be
// used, and dropped, on another thread.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as above; readers on several threads share the value, so it must be Sync.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// A lock around `value`, free.
    pub fn new(value: T) -> RwLock<T> {
        RwLock {
            semaphore: Semaphore::new(PERMITS),
            value: UnsafeCell::new(value),
        }
    }

    /// Consumes the lock and returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until there is no writer and no writer came before.
    ///
    /// Cancel-safe: a dropped wait loses its place, and passes on what it was handed.
    pub async fn read(&self) -> RwLockReadGuard<'_, T> {
        // The semaphore is never closed.
        let _ = self.semaphore.wait(1).await;
        RwLockReadGuard::new(self)
    }

    /// Waits until there is no reader and no writer. Cancel-safe like [`RwLock::read`].
    pub async fn write(&self) -> RwLockWriteGuard<'_, T> {
        // The semaphore is never closed.
        let _ = self.semaphore.wait(PERMITS).await;
        RwLockWriteGuard::new(self)
    }

    /// Blocks this thread until it may read.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        windlass_core::block_on(self.read())
    }

    /// Blocks this thread until it may write.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        windlass_core::block_on(self.write())
    }

    /// Reads if there is no writer and no waiter.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        match self.semaphore.try_take(1) {
            Ok(()) => Ok(RwLockReadGuard::new(self)),
            Err(_) => Err(TryLockError(())),
        }
    }

    /// Writes if there is no reader, no writer and no waiter.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        match self.semaphore.try_take(PERMITS) {
            Ok(()) => Ok(RwLockWriteGuard::new(self)),
            Err(_) => Err(TryLockError(())),
        }
    }

    /// Returns the value without locking: the borrow proves that there is no other user.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `&mut self`: there is no guard.
        unsafe { &mut *self.value.with_mut(|value| value) }
    }
}

/// The right to read a [`RwLock`]'s value.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    _value: PhantomData<&'a T>,
}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// The caller has one permit.
    fn new(lock: &'a RwLock<T>) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard {
            lock,
            _value: PhantomData,
        }
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds a permit: no writer has them all.
        unsafe { &*self.lock.value.with(|value| value) }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.semaphore.release(1);
    }
}

/// The right to write a [`RwLock`]'s value.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    _value: PhantomData<&'a mut T>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// The caller has all permits.
    fn new(lock: &'a RwLock<T>) -> RwLockWriteGuard<'a, T> {
        RwLockWriteGuard {
            lock,
            _value: PhantomData,
        }
    }

    /// Goes on as a reader, and lets other readers in; no writer comes in between.
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        let lock = self.lock;
        // All permits but one go back here, instead of all in the drop.
        std::mem::forget(self);
        let guard = RwLockReadGuard::new(lock);
        lock.semaphore.release(PERMITS - 1);
        guard
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds all permits.
        unsafe { &*self.lock.value.with(|value| value) }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds all permits, and is borrowed uniquely.
        unsafe { &mut *self.lock.value.with_mut(|value| value) }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.semaphore.release(PERMITS);
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => out.field("value", &&*guard),
            Err(_) => out.field("value", &format_args!("<locked>")),
        };
        out.finish()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

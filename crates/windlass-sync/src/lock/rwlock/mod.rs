//! A lock for many readers or one writer.

mod mapped_write_guard;
mod read_guard;
mod write_guard;

use std::fmt;

use windlass_core::sync::{Arc, UnsafeCell};

pub use self::mapped_write_guard::{OwnedRwLockMappedWriteGuard, RwLockMappedWriteGuard};
pub use self::read_guard::{OwnedRwLockReadGuard, RwLockReadGuard};
pub use self::write_guard::{OwnedRwLockWriteGuard, RwLockWriteGuard};
use super::guard::Lock;
use super::{Semaphore, TryLockError};

/// The most readers at once, unless a lock says otherwise.
const MOST_READERS: u32 = u32::MAX >> 3;

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
    /// A reader takes one permit, a writer all of them.
    semaphore: Semaphore,
    max_readers: u32,
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
        RwLock::with_max_readers(value, MOST_READERS)
    }

    /// A lock around `value`, free, that lets in at most `max_readers` readers at once.
    ///
    /// # Panics
    /// If that is 0 (writers would not exclude each other), or more than `u32::MAX >> 3`.
    #[track_caller]
    pub fn with_max_readers(value: T, max_readers: u32) -> RwLock<T> {
        assert!(
            max_readers > 0,
            "a RwLock may not be created with 0 readers"
        );
        assert!(
            max_readers <= MOST_READERS,
            "a RwLock may not be created with more than {MOST_READERS} readers"
        );
        RwLock {
            semaphore: Semaphore::new(max_readers as usize),
            max_readers,
            value: UnsafeCell::new(value),
        }
    }

    /// A lock around `value`, free, for a `static`.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_new(value: T) -> RwLock<T> {
        RwLock::const_with_max_readers(value, MOST_READERS)
    }

    /// A lock around `value`, free, that lets in at most `max_readers` readers at once, for a
    /// `static`.
    ///
    /// # Panics
    /// If that is 0 (writers would not exclude each other), or more than `u32::MAX >> 3`.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_with_max_readers(value: T, max_readers: u32) -> RwLock<T> {
        assert!(
            max_readers > 0,
            "a RwLock may not be created with 0 readers"
        );
        assert!(max_readers <= MOST_READERS);
        RwLock {
            semaphore: Semaphore::const_new(max_readers as usize),
            max_readers,
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
        let _ = self.semaphore.wait(self.max_readers()).await;
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
        match self.semaphore.try_take(self.max_readers()) {
            Ok(()) => Ok(RwLockWriteGuard::new(self)),
            Err(_) => Err(TryLockError(())),
        }
    }

    /// Waits as [`RwLock::read`] does, for a guard that keeps the lock alive. Cancel-safe.
    pub async fn read_owned(self: Arc<Self>) -> OwnedRwLockReadGuard<T> {
        // The semaphore is never closed.
        let _ = self.semaphore.wait(1).await;
        OwnedRwLockReadGuard::new(self)
    }

    /// Waits as [`RwLock::write`] does, for a guard that keeps the lock alive. Cancel-safe.
    pub async fn write_owned(self: Arc<Self>) -> OwnedRwLockWriteGuard<T> {
        // The semaphore is never closed.
        let _ = self.semaphore.wait(self.max_readers()).await;
        OwnedRwLockWriteGuard::new(self)
    }

    /// Reads as [`RwLock::try_read`] does, with a guard that keeps the lock alive.
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        match self.semaphore.try_take(1) {
            Ok(()) => Ok(OwnedRwLockReadGuard::new(self)),
            Err(_) => Err(TryLockError(())),
        }
    }

    /// Writes as [`RwLock::try_write`] does, with a guard that keeps the lock alive.
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        match self.semaphore.try_take(self.max_readers()) {
            Ok(()) => Ok(OwnedRwLockWriteGuard::new(self)),
            Err(_) => Err(TryLockError(())),
        }
    }

    fn max_readers(&self) -> usize {
        self.max_readers as usize
    }

    /// Returns the value without locking: the borrow proves that there is no other user.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `&mut self`: there is no guard.
        unsafe { &mut *self.value.with_mut(|value| value) }
    }
}

impl<T: ?Sized> Lock for RwLock<T> {
    fn semaphore(&self) -> &Semaphore {
        &self.semaphore
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
            Ok(guard) => out.field("data", &&*guard),
            Err(_) => out.field("data", &format_args!("<locked>")),
        };
        out.finish()
    }
}

//! Guards of the one writer.

use std::marker::PhantomData;

use windlass_core::sync::Arc;

use super::RwLock;
use super::mapped_write_guard::{OwnedRwLockMappedWriteGuard, RwLockMappedWriteGuard};
use super::read_guard::{OwnedRwLockReadGuard, RwLockReadGuard};
use crate::lock::SemaphorePermit;
use crate::lock::guard::{OwnedPermits, guard_traits, narrowing};

/// The right to change a [`RwLock`]'s value.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    permit: SemaphorePermit<'a>,
    value: *mut T,
    _value: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a unique borrow of the value, or later a shared one.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockWriteGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// The caller has all permits.
    pub(super) fn new(lock: &'a RwLock<T>) -> RwLockWriteGuard<'a, T> {
        RwLockWriteGuard {
            permit: SemaphorePermit::new(&lock.semaphore, lock.max_readers()),
            value: lock.value.with_mut(|value| value),
            _value: PhantomData,
        }
    }

    narrowing!(unique T => U: RwLockMappedWriteGuard<'a, U>, |guard| guard.permit);

    /// Makes a guard of the type that [`RwLockWriteGuard::map`] returns, for the whole value.
    pub fn into_mapped(guard: Self) -> RwLockMappedWriteGuard<'a, T> {
        RwLockMappedWriteGuard::narrowed(guard.permit, guard.value)
    }

    /// Goes on as a reader, and lets other readers in; no writer comes in between.
    pub fn downgrade(mut self) -> RwLockReadGuard<'a, T> {
        // No reader comes before the last use of the value by the writer: it is over.
        self.permit.keep_one();
        RwLockReadGuard::narrowed(self.permit, self.value)
    }

    narrowing!(downgraded T => U: RwLockReadGuard<'a, U>, |guard| guard.downgrade().into_permit());
}

guard_traits!(unique [T: ?Sized] RwLockWriteGuard<'_, T> => T);

/// The right to change a [`RwLock`]'s value, which it keeps alive.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    permits: OwnedPermits<RwLock<T>>,
    value: *mut T,
}

// SAFETY: the guard is a unique borrow of the value, or later a shared one, and may drop it.
unsafe impl<T: ?Sized + Send + Sync> Send for OwnedRwLockWriteGuard<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedRwLockWriteGuard<T> {}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    /// The caller has all permits.
    pub(super) fn new(lock: Arc<RwLock<T>>) -> OwnedRwLockWriteGuard<T> {
        let (value, count) = (lock.value.with_mut(|value| value), lock.max_readers());
        OwnedRwLockWriteGuard {
            permits: OwnedPermits::new(lock, count),
            value,
        }
    }

    narrowing!(unique T => U: OwnedRwLockMappedWriteGuard<T, U>, |guard| guard.permits);

    /// Makes a guard of the type that [`OwnedRwLockWriteGuard::map`] returns, for the whole value.
    pub fn into_mapped(guard: Self) -> OwnedRwLockMappedWriteGuard<T> {
        OwnedRwLockMappedWriteGuard::narrowed(guard.permits, guard.value)
    }

    /// Goes on as a reader, and lets other readers in; no writer comes in between.
    pub fn downgrade(mut self) -> OwnedRwLockReadGuard<T> {
        self.permits.keep_one();
        OwnedRwLockReadGuard::narrowed(self.permits, self.value)
    }

    narrowing!(downgraded T => U: OwnedRwLockReadGuard<T, U>, |guard| guard.downgrade().into_permits());

    /// Returns the lock that this is the guard of.
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        guard.permits.lock()
    }
}

guard_traits!(unique [T: ?Sized] OwnedRwLockWriteGuard<T> => T);

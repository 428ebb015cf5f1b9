//! Guards of readers.

use std::marker::PhantomData;

use windlass_core::sync::Arc;

use super::RwLock;
use crate::lock::SemaphorePermit;
use crate::lock::guard::{OwnedPermits, guard_traits, narrowing};

/// The right to read a [`RwLock`]'s value, or a part of it.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    permit: SemaphorePermit<'a>,
    value: *const T,
    _value: PhantomData<&'a T>,
}

// SAFETY: the guard is a shared borrow of the value.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockReadGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// The caller has one permit.
    pub(super) fn new(lock: &'a RwLock<T>) -> RwLockReadGuard<'a, T> {
        let permit = SemaphorePermit::new(&lock.semaphore, 1);
        RwLockReadGuard::narrowed(permit, lock.value.with(|value| value))
    }

    /// The caller hands over one permit.
    pub(super) fn narrowed(permit: SemaphorePermit<'a>, value: *const T) -> Self {
        RwLockReadGuard {
            permit,
            value,
            _value: PhantomData,
        }
    }

    pub(super) fn into_permit(self) -> SemaphorePermit<'a> {
        self.permit
    }

    narrowing!(shared T => U: RwLockReadGuard<'a, U>, |guard| guard.permit);
}

guard_traits!(shared [T: ?Sized] RwLockReadGuard<'_, T> => T);

/// The right to read a [`RwLock`]'s value, or a part of it; keeps the lock alive.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    permits: OwnedPermits<RwLock<T>>,
    value: *const U,
    _value: PhantomData<T>,
}

// SAFETY: the guard is a shared borrow of the part, and may drop the whole.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Send for OwnedRwLockReadGuard<T, U> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedRwLockReadGuard<T, U> {}

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    /// The caller has one permit.
    pub(super) fn new(lock: Arc<RwLock<T>>) -> OwnedRwLockReadGuard<T> {
        let value = lock.value.with(|value| value);
        OwnedRwLockReadGuard::narrowed(OwnedPermits::new(lock, 1), value)
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// The caller hands over one permit.
    pub(super) fn narrowed(permits: OwnedPermits<RwLock<T>>, value: *const U) -> Self {
        OwnedRwLockReadGuard {
            permits,
            value,
            _value: PhantomData,
        }
    }

    pub(super) fn into_permits(self) -> OwnedPermits<RwLock<T>> {
        self.permits
    }

    narrowing!(shared U => V: OwnedRwLockReadGuard<T, V>, |guard| guard.permits);

    /// Returns the lock that this is the guard of.
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        guard.permits.lock()
    }
}

guard_traits!(shared [T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U> => U);

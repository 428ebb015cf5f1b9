//! Guards of readers.

use std::marker::PhantomData;

use windlass_core::sync::Arc;

use super::RwLock;
use crate::lock::SemaphorePermit;
use crate::lock::guard::{OwnedPermits, guard_traits};

/// The right to read a [`RwLock`]'s value, or a part of it.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    pub(super) permit: SemaphorePermit<'a>,
    pub(super) value: *const T,
    pub(super) _value: PhantomData<&'a T>,
}

// SAFETY: the guard is a shared borrow of the value.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockReadGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    /// The caller has one permit.
    pub(super) fn new(lock: &'a RwLock<T>) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard {
            permit: SemaphorePermit::new(&lock.semaphore, 1),
            value: lock.value.with(|value| value),
            _value: PhantomData,
        }
    }

    /// Narrows the guard to a part of its value.
    pub fn map<U: ?Sized>(guard: Self, part: impl FnOnce(&T) -> &U) -> RwLockReadGuard<'a, U> {
        let value: *const U = part(&guard);
        RwLockReadGuard {
            permit: guard.permit,
            value,
            _value: PhantomData,
        }
    }

    /// Narrows the guard to a part of its value, if there is one.
    ///
    /// # Errors
    /// If `part` returns none: the guard comes back.
    pub fn try_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<RwLockReadGuard<'a, U>, Self> {
        let Some(value) = part(&guard).map(|value| value as *const U) else {
            return Err(guard);
        };
        Ok(RwLockReadGuard {
            permit: guard.permit,
            value,
            _value: PhantomData,
        })
    }
}

guard_traits!(shared [T: ?Sized] RwLockReadGuard<'_, T> => T);

/// The right to read a [`RwLock`]'s value, or a part of it; keeps the lock alive.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    pub(super) permits: OwnedPermits<RwLock<T>>,
    pub(super) value: *const U,
    pub(super) _value: PhantomData<T>,
}

// SAFETY: the guard is a shared borrow of the part, and may drop the whole.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Send for OwnedRwLockReadGuard<T, U> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedRwLockReadGuard<T, U> {}

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    /// The caller has one permit.
    pub(super) fn new(lock: Arc<RwLock<T>>) -> OwnedRwLockReadGuard<T> {
        let value = lock.value.with(|value| value);
        OwnedRwLockReadGuard {
            permits: OwnedPermits::new(lock, 1),
            value,
            _value: PhantomData,
        }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    /// Narrows the guard to a part of its value.
    pub fn map<V: ?Sized>(guard: Self, part: impl FnOnce(&U) -> &V) -> OwnedRwLockReadGuard<T, V> {
        let value: *const V = part(&guard);
        OwnedRwLockReadGuard {
            permits: guard.permits,
            value,
            _value: PhantomData,
        }
    }

    /// Narrows the guard to a part of its value, if there is one.
    ///
    /// # Errors
    /// If `part` returns none: the guard comes back.
    pub fn try_map<V: ?Sized>(
        guard: Self,
        part: impl FnOnce(&U) -> Option<&V>,
    ) -> Result<OwnedRwLockReadGuard<T, V>, Self> {
        let Some(value) = part(&guard).map(|value| value as *const V) else {
            return Err(guard);
        };
        Ok(OwnedRwLockReadGuard {
            permits: guard.permits,
            value,
            _value: PhantomData,
        })
    }

    /// Returns the lock that this is the guard of.
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        guard.permits.lock()
    }
}

guard_traits!(shared [T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U> => U);

//! Guards of a writer for a part of the value.

use std::marker::PhantomData;

use windlass_core::sync::Arc;

use super::RwLock;
use crate::lock::SemaphorePermit;
use crate::lock::guard::{OwnedPermits, guard_traits, narrowing};

/// The right to change a part of a [`RwLock`]'s value, from
/// [`RwLockWriteGuard::map`](super::RwLockWriteGuard::map).
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized> {
    permit: SemaphorePermit<'a>,
    value: *mut T,
    _value: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a unique borrow of the value.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockMappedWriteGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockMappedWriteGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    /// The caller hands over all permits.
    pub(super) fn narrowed(permit: SemaphorePermit<'a>, value: *mut T) -> Self {
        RwLockMappedWriteGuard {
            permit,
            value,
            _value: PhantomData,
        }
    }

    narrowing!(unique T => U: RwLockMappedWriteGuard<'a, U>, |guard| guard.permit);
}

guard_traits!(unique [T: ?Sized] RwLockMappedWriteGuard<'_, T> => T);

/// The right to change a part of a [`RwLock`]'s value, which it keeps alive, from
/// [`OwnedRwLockWriteGuard::map`](super::OwnedRwLockWriteGuard::map).
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    permits: OwnedPermits<RwLock<T>>,
    value: *mut U,
}

// SAFETY: the guard is a unique borrow of the part, and may drop the whole.
unsafe impl<T, U> Send for OwnedRwLockMappedWriteGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Send + Sync,
{
}
// SAFETY: as above.
unsafe impl<T, U> Sync for OwnedRwLockMappedWriteGuard<T, U>
where
    T: ?Sized + Send + Sync,
    U: ?Sized + Send + Sync,
{
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    /// The caller hands over all permits.
    pub(super) fn narrowed(permits: OwnedPermits<RwLock<T>>, value: *mut U) -> Self {
        OwnedRwLockMappedWriteGuard { permits, value }
    }

    narrowing!(unique U => V: OwnedRwLockMappedWriteGuard<T, V>, |guard| guard.permits);

    /// Returns the lock that this is the guard of.
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        guard.permits.lock()
    }
}

guard_traits!(unique [T: ?Sized, U: ?Sized] OwnedRwLockMappedWriteGuard<T, U> => U);

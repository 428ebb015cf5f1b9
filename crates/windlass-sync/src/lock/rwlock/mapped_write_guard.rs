//! Guards of a writer for a part of the value.

use std::marker::PhantomData;

use windlass_core::sync::Arc;

use super::RwLock;
use crate::lock::SemaphorePermit;
use crate::lock::guard::{OwnedPermits, guard_traits};

/// The right to change a part of a [`RwLock`]'s value, from
/// [`RwLockWriteGuard::map`](super::RwLockWriteGuard::map).
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized> {
    pub(super) permit: SemaphorePermit<'a>,
    pub(super) value: *mut T,
    pub(super) _value: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a unique borrow of the value.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockMappedWriteGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockMappedWriteGuard<'_, T> {}

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    /// Narrows the guard to a part of its value.
    pub fn map<U: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> RwLockMappedWriteGuard<'a, U> {
        let value: *mut U = part(&mut guard);
        RwLockMappedWriteGuard {
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
        mut guard: Self,
        part: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<RwLockMappedWriteGuard<'a, U>, Self> {
        let Some(value) = part(&mut guard).map(|value| value as *mut U) else {
            return Err(guard);
        };
        Ok(RwLockMappedWriteGuard {
            permit: guard.permit,
            value,
            _value: PhantomData,
        })
    }
}

guard_traits!(unique [T: ?Sized] RwLockMappedWriteGuard<'_, T> => T);

/// The right to change a part of a [`RwLock`]'s value, which it keeps alive, from
/// [`OwnedRwLockWriteGuard::map`](super::OwnedRwLockWriteGuard::map).
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    pub(super) permits: OwnedPermits<RwLock<T>>,
    pub(super) value: *mut U,
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
    /// Narrows the guard to a part of its value.
    pub fn map<V: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut U) -> &mut V,
    ) -> OwnedRwLockMappedWriteGuard<T, V> {
        let value: *mut V = part(&mut guard);
        OwnedRwLockMappedWriteGuard {
            permits: guard.permits,
            value,
        }
    }

    /// Narrows the guard to a part of its value, if there is one.
    ///
    /// # Errors
    /// If `part` returns none: the guard comes back.
    pub fn try_map<V: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut U) -> Option<&mut V>,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, V>, Self> {
        let Some(value) = part(&mut guard).map(|value| value as *mut V) else {
            return Err(guard);
        };
        Ok(OwnedRwLockMappedWriteGuard {
            permits: guard.permits,
            value,
        })
    }

    /// Returns the lock that this is the guard of.
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        guard.permits.lock()
    }
}

guard_traits!(unique [T: ?Sized, U: ?Sized] OwnedRwLockMappedWriteGuard<T, U> => U);

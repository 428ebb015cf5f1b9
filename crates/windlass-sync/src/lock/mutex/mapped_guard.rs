//! Guards for a part of a mutex's value.

use std::marker::PhantomData;

use super::Mutex;
use crate::lock::SemaphorePermit;
use crate::lock::guard::{OwnedPermits, guard_traits};

/// The right to a part of a [`Mutex`]'s value, from [`MutexGuard::map`](super::MutexGuard::map);
/// the drop unlocks.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    pub(super) permit: SemaphorePermit<'a>,
    pub(super) value: *mut T,
    pub(super) _value: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a unique borrow of the value.
unsafe impl<T: ?Sized + Send> Send for MappedMutexGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for MappedMutexGuard<'_, T> {}

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    /// Narrows the guard to a part of its value.
    pub fn map<U: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> MappedMutexGuard<'a, U> {
        let value: *mut U = part(&mut guard);
        MappedMutexGuard {
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
    ) -> Result<MappedMutexGuard<'a, U>, Self> {
        let Some(value) = part(&mut guard).map(|value| value as *mut U) else {
            return Err(guard);
        };
        Ok(MappedMutexGuard {
            permit: guard.permit,
            value,
            _value: PhantomData,
        })
    }
}

guard_traits!(unique [T: ?Sized] MappedMutexGuard<'_, T> => T);

/// The right to a part of a [`Mutex`]'s value, which it keeps alive, from
/// [`OwnedMutexGuard::map`](super::OwnedMutexGuard::map); the drop unlocks.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    pub(super) permits: OwnedPermits<Mutex<T>>,
    pub(super) value: *mut U,
}

// SAFETY: the guard is a unique borrow of the part, and may drop the whole.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMappedMutexGuard<T, U> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedMappedMutexGuard<T, U> {}

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// Narrows the guard to a part of its value.
    pub fn map<V: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut U) -> &mut V,
    ) -> OwnedMappedMutexGuard<T, V> {
        let value: *mut V = part(&mut guard);
        OwnedMappedMutexGuard {
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
    ) -> Result<OwnedMappedMutexGuard<T, V>, Self> {
        let Some(value) = part(&mut guard).map(|value| value as *mut V) else {
            return Err(guard);
        };
        Ok(OwnedMappedMutexGuard {
            permits: guard.permits,
            value,
        })
    }
}

guard_traits!(unique [T: ?Sized, U: ?Sized] OwnedMappedMutexGuard<T, U> => U);

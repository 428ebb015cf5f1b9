//! Guards for a part of a mutex's value.

use std::marker::PhantomData;

use super::Mutex;
use crate::lock::SemaphorePermit;
use crate::lock::guard::{OwnedPermits, guard_traits, narrowing};

/// The right to a part of a [`Mutex`]'s value, from [`MutexGuard::map`](super::MutexGuard::map);
/// the drop unlocks.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    permit: SemaphorePermit<'a>,
    value: *mut T,
    _value: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a unique borrow of the value.
unsafe impl<T: ?Sized + Send> Send for MappedMutexGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for MappedMutexGuard<'_, T> {}

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    /// The permit is the right to the part.
    pub(super) fn narrowed(permit: SemaphorePermit<'a>, value: *mut T) -> Self {
        MappedMutexGuard {
            permit,
            value,
            _value: PhantomData,
        }
    }

    narrowing!(unique T => U: MappedMutexGuard<'a, U>, |guard| guard.permit);
}

guard_traits!(unique [T: ?Sized] MappedMutexGuard<'_, T> => T);

/// The right to a part of a [`Mutex`]'s value, which it keeps alive, from
/// [`OwnedMutexGuard::map`](super::OwnedMutexGuard::map); the drop unlocks.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    permits: OwnedPermits<Mutex<T>>,
    value: *mut U,
}

// SAFETY: the guard is a unique borrow of the part, and may drop the whole.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMappedMutexGuard<T, U> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedMappedMutexGuard<T, U> {}

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    /// The permits are the right to the part.
    pub(super) fn narrowed(permits: OwnedPermits<Mutex<T>>, value: *mut U) -> Self {
        OwnedMappedMutexGuard { permits, value }
    }

    narrowing!(unique U => V: OwnedMappedMutexGuard<T, V>, |guard| guard.permits);
}

guard_traits!(unique [T: ?Sized, U: ?Sized] OwnedMappedMutexGuard<T, U> => U);

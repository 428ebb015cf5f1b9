//! Guards of the one writer.

use std::marker::PhantomData;

use windlass_core::sync::Arc;

use super::RwLock;
use super::mapped_write_guard::{OwnedRwLockMappedWriteGuard, RwLockMappedWriteGuard};
use super::read_guard::{OwnedRwLockReadGuard, RwLockReadGuard};
use crate::lock::SemaphorePermit;
use crate::lock::guard::{OwnedPermits, guard_traits};

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

    /// Narrows the guard to a part of its value.
    pub fn map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> RwLockMappedWriteGuard<'a, U> {
        RwLockMappedWriteGuard::map(RwLockWriteGuard::into_mapped(guard), part)
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

    /// Makes a guard of the type that [`RwLockWriteGuard::map`] returns, for the whole value.
    pub fn into_mapped(guard: Self) -> RwLockMappedWriteGuard<'a, T> {
        RwLockMappedWriteGuard {
            permit: guard.permit,
            value: guard.value,
            _value: PhantomData,
        }
    }

    /// Goes on as a reader, and lets other readers in; no writer comes in between.
    pub fn downgrade(mut self) -> RwLockReadGuard<'a, T> {
        // No reader comes before the last use of the value by the writer: it is over.
        self.permit.keep_one();
        RwLockReadGuard {
            permit: self.permit,
            value: self.value,
            _value: PhantomData,
        }
    }

    /// Goes on as a reader of a part of the value, and lets other readers in.
    pub fn downgrade_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> &U,
    ) -> RwLockReadGuard<'a, U> {
        let value: *const U = part(&guard);
        RwLockReadGuard {
            value,
            permit: guard.downgrade().permit,
            _value: PhantomData,
        }
    }

    /// Goes on as a reader of a part of the value, if there is one.
    ///
    /// # Errors
    /// If `part` returns none: the guard comes back.
    pub fn try_downgrade_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<RwLockReadGuard<'a, U>, Self> {
        let Some(value) = part(&guard).map(|value| value as *const U) else {
            return Err(guard);
        };
        Ok(RwLockReadGuard {
            value,
            permit: guard.downgrade().permit,
            _value: PhantomData,
        })
    }
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

    /// Narrows the guard to a part of its value.
    pub fn map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&mut T) -> &mut U,
    ) -> OwnedRwLockMappedWriteGuard<T, U> {
        OwnedRwLockMappedWriteGuard::map(OwnedRwLockWriteGuard::into_mapped(guard), part)
    }

    /// Narrows the guard to a part of its value, if there is one.
    ///
    /// # Errors
    /// If `part` returns none: the guard comes back.
    pub fn try_map<U: ?Sized>(
        mut guard: Self,
        part: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, U>, Self> {
        let Some(value) = part(&mut guard).map(|value| value as *mut U) else {
            return Err(guard);
        };
        Ok(OwnedRwLockMappedWriteGuard {
            permits: guard.permits,
            value,
        })
    }

    /// Makes a guard of the type that [`OwnedRwLockWriteGuard::map`] returns, for the whole value.
    pub fn into_mapped(guard: Self) -> OwnedRwLockMappedWriteGuard<T> {
        OwnedRwLockMappedWriteGuard {
            permits: guard.permits,
            value: guard.value,
        }
    }

    /// Goes on as a reader, and lets other readers in; no writer comes in between.
    pub fn downgrade(mut self) -> OwnedRwLockReadGuard<T> {
        self.permits.keep_one();
        OwnedRwLockReadGuard {
            permits: self.permits,
            value: self.value,
            _value: PhantomData,
        }
    }

    /// Goes on as a reader of a part of the value, and lets other readers in.
    pub fn downgrade_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> &U,
    ) -> OwnedRwLockReadGuard<T, U> {
        let value: *const U = part(&guard);
        OwnedRwLockReadGuard {
            permits: guard.downgrade().permits,
            value,
            _value: PhantomData,
        }
    }

    /// Goes on as a reader of a part of the value, if there is one.
    ///
    /// # Errors
    /// If `part` returns none: the guard comes back.
    pub fn try_downgrade_map<U: ?Sized>(
        guard: Self,
        part: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<OwnedRwLockReadGuard<T, U>, Self> {
        let Some(value) = part(&guard).map(|value| value as *const U) else {
            return Err(guard);
        };
        Ok(OwnedRwLockReadGuard {
            permits: guard.downgrade().permits,
            value,
            _value: PhantomData,
        })
    }

    /// Returns the lock that this is the guard of.
    pub fn rwlock(guard: &Self) -> &Arc<RwLock<T>> {
        guard.permits.lock()
    }
}

guard_traits!(unique [T: ?Sized] OwnedRwLockWriteGuard<T> => T);

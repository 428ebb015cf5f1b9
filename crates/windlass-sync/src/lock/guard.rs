//! What the guards of locks share: the permits of one that keeps its lock alive, and the traits by
//! which a guard is used as its value.

use windlass_core::sync::Arc;

use super::Semaphore;

/// A lock whose right of use is a number of permits.
pub(super) trait Lock {
    fn semaphore(&self) -> &Semaphore;
}

/// Permits of a lock that is kept alive; they go back when dropped.
pub(super) struct OwnedPermits<L: Lock + ?Sized> {
    lock: Arc<L>,
    count: usize,
}

impl<L: Lock + ?Sized> OwnedPermits<L> {
    /// The caller has taken `count` permits.
    pub(super) fn new(lock: Arc<L>, count: usize) -> OwnedPermits<L> {
        OwnedPermits { lock, count }
    }

    pub(super) fn lock(&self) -> &Arc<L> {
        &self.lock
    }

    /// Gives all permits but one back.
    pub(super) fn keep_one(&mut self) {
        let rest = std::mem::replace(&mut self.count, 1) - 1;
        self.lock.semaphore().release(rest);
    }
}

impl<L: Lock + ?Sized> Drop for OwnedPermits<L> {
    fn drop(&mut self) {
        self.lock.semaphore().release(self.count);
    }
}

/// `Deref`, `Debug` and `Display` of a guard with a field `value`, a pointer that may be read for
/// as long as the guard has its permits; `unique` adds `DerefMut`, for one that may be written.
macro_rules! guard_traits {
    (shared [$($generics:tt)*] $Guard:ty => $Target:ident) => {
        impl<$($generics)*> ::std::ops::Deref for $Guard {
            type Target = $Target;
            fn deref(&self) -> &$Target {
                // SAFETY: the guard's permits are the right to read the value, and it has them.
                unsafe { &*self.value }
            }
        }

        impl<$($generics)*> ::std::fmt::Debug for $Guard
        where
            $Target: ::std::fmt::Debug,
        {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Debug::fmt(&**self, f)
            }
        }

        impl<$($generics)*> ::std::fmt::Display for $Guard
        where
            $Target: ::std::fmt::Display,
        {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&**self, f)
            }
        }
    };
    (unique [$($generics:tt)*] $Guard:ty => $Target:ident) => {
        $crate::lock::guard::guard_traits!(shared [$($generics)*] $Guard => $Target);

        impl<$($generics)*> ::std::ops::DerefMut for $Guard {
            fn deref_mut(&mut self) -> &mut $Target {
                // SAFETY: the guard's permits are the right to write the value, it has them, and it
                // is borrowed uniquely.
                unsafe { &mut *self.value }
            }
        }
    };
}

pub(super) use guard_traits;

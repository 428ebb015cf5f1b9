//! What the guards of locks share: the permits of one that keeps its lock alive, the traits by
//! which a guard is used as its value, and the methods that narrow it to a part of the value.

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

/// The traits by which a guard is used as its value. `shown` are `Debug` and `Display`. `shared`
/// adds `Deref` for a guard with a field `value`, a pointer that may be read for as long as the
/// guard has its permits; `unique` adds `DerefMut`, for one that may be written.
macro_rules! guard_traits {
    (shown [$($generics:tt)*] $Guard:ty => $Target:ident) => {
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
    (shared [$($generics:tt)*] $Guard:ty => $Target:ident) => {
        impl<$($generics)*> ::std::ops::Deref for $Guard {
            type Target = $Target;
            fn deref(&self) -> &$Target {
                // SAFETY: the guard's permits are the right to read the value, and it has them.
                unsafe { &*self.value }
            }
        }

        $crate::lock::guard::guard_traits!(shown [$($generics)*] $Guard => $Target);
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

/// The methods that narrow a guard to a part of its value, for an `impl` block of the guard:
/// `unique` and `shared` are `map` and `try_map`, `downgraded` is what a writer has beside them.
///
/// `$permits` takes the permits out of the guard; the guard `$Narrowed` is made of them, and of a
/// pointer to the part, by its function `narrowed`.
macro_rules! narrowing {
    (unique $Whole:ident => $Part:ident: $Narrowed:ty, |$guard:ident| $permits:expr) => {
        $crate::lock::guard::narrowing!(
            @ "Narrows the guard to a part of its value.",
            map, try_map, [mut] mut, $Whole => $Part: $Narrowed, |$guard| $permits
        );
    };
    (shared $Whole:ident => $Part:ident: $Narrowed:ty, |$guard:ident| $permits:expr) => {
        $crate::lock::guard::narrowing!(
            @ "Narrows the guard to a part of its value.",
            map, try_map, [] const, $Whole => $Part: $Narrowed, |$guard| $permits
        );
    };
    (downgraded $Whole:ident => $Part:ident: $Narrowed:ty, |$guard:ident| $permits:expr) => {
        $crate::lock::guard::narrowing!(
            @ "Goes on as a reader of a part of the value, and lets other readers in.",
            downgrade_map, try_downgrade_map, [] const, $Whole => $Part: $Narrowed,
            |$guard| $permits
        );
    };
    (
        @ $what:literal, $map:ident, $try_map:ident, [$($mutable:tt)?] $pointer:tt,
        $Whole:ident => $Part:ident: $Narrowed:ty, |$guard:ident| $permits:expr
    ) => {
        #[doc = $what]
        pub fn $map<$Part: ?Sized>(
            $($mutable)? $guard: Self,
            part: impl FnOnce(&$($mutable)? $Whole) -> &$($mutable)? $Part,
        ) -> $Narrowed {
            let part: *$pointer $Part = part(&$($mutable)? $guard);
            <$Narrowed>::narrowed($permits, part)
        }

        #[doc = $what]
        ///
        /// # Errors
        /// If `part` returns none: the guard comes back.
        pub fn $try_map<$Part: ?Sized>(
            $($mutable)? $guard: Self,
            part: impl FnOnce(&$($mutable)? $Whole) -> Option<&$($mutable)? $Part>,
        ) -> Result<$Narrowed, Self> {
            match part(&$($mutable)? $guard).map(|part| part as *$pointer $Part) {
                Some(part) => Ok(<$Narrowed>::narrowed($permits, part)),
                None => Err($guard),
            }
        }
    };
}

pub(super) use narrowing;

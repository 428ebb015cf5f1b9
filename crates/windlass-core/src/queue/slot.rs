//! The LIFO slot: one task that the worker runs next, because its data is still in the cache.
//!
//! Only the owner fills it, so a slot the owner has seen empty stays empty until the owner fills
//! it, and that fill is a plain store. A thief may empty it, on its last pass.

use std::ptr::NonNull;

use crate::sync::Padded;
use crate::sync::atomic::{AtomicPtr, Ordering};

/// The slot of one worker.
#[derive(Debug)]
pub struct Slot<T>(Padded<AtomicPtr<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot(Padded(AtomicPtr::new(std::ptr::null_mut())))
    }
}

impl<T> Slot<T> {
    /// Owner: puts `item` in; what it displaced comes out.
    #[inline]
    pub fn put(&self, item: NonNull<T>) -> Option<NonNull<T>> {
        if self.0.load(Ordering::Relaxed).is_null() {
            // Release: pairs with the Acquire exchange in `steal`.
            self.0.store(item.as_ptr(), Ordering::Release);
            return None;
        }
        // Release: as above. The old item was written by this thread.
        NonNull::new(self.0.swap(item.as_ptr(), Ordering::Release))
    }

    /// Owner: takes the item out.
    #[inline]
    pub fn take(&self) -> Option<NonNull<T>> {
        if self.0.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // Relaxed: the owner wrote it; the exchange only decides between us and a thief.
        NonNull::new(self.0.swap(std::ptr::null_mut(), Ordering::Relaxed))
    }

    /// Thief: takes the item out.
    pub fn steal(&self) -> Option<NonNull<T>> {
        let item = NonNull::new(self.0.load(Ordering::Relaxed))?;
        // Acquire: pairs with the Release store or swap in `put`.
        self.0
            .compare_exchange(
                item.as_ptr(),
                std::ptr::null_mut(),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .ok()?;
        Some(item)
    }

    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }
}

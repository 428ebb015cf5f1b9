//! A chain of linked items that moves as one.

use std::ptr::NonNull;

use crate::sync::atomic::{AtomicPtr, Ordering};

/// An item with a link, which belongs to the owner of the item.
pub trait Linked: Sized {
    /// Returns the link to the next item.
    fn link(&self) -> &AtomicPtr<Self>;
}

/// Items linked newest to oldest: the order in which the injector's inbox wants them.
#[derive(Debug)]
pub struct Batch<T: Linked> {
    pub(super) newest: *mut T,
    pub(super) oldest: *mut T,
    pub(super) len: usize,
}

impl<T: Linked> Default for Batch<T> {
    fn default() -> Self {
        Batch {
            newest: std::ptr::null_mut(),
            oldest: std::ptr::null_mut(),
            len: 0,
        }
    }
}

impl<T: Linked> Batch<T> {
    /// Adds an item, which is now the batch's.
    ///
    /// # Safety
    /// The caller owns `item`, and it stays alive while it is linked.
    pub unsafe fn push(&mut self, item: NonNull<T>) {
        // SAFETY: owned and alive, says the caller.
        unsafe { item.as_ref() }
            .link()
            .store(self.newest, Ordering::Relaxed);
        self.newest = item.as_ptr();
        if self.oldest.is_null() {
            self.oldest = item.as_ptr();
        }
        self.len += 1;
    }

    /// Takes the batch apart, newest first.
    pub fn for_each(self, mut give: impl FnMut(NonNull<T>)) {
        let mut item = self.newest;
        for _ in 0..self.len {
            let Some(there) = NonNull::new(item) else {
                return;
            };
            // SAFETY: linked items are alive and the batch's; read before it is given away.
            item = unsafe { there.as_ref() }.link().load(Ordering::Relaxed);
            give(there);
        }
    }

    /// Items in the batch.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

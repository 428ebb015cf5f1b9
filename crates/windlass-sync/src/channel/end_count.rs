//! How many ends of one kind a channel has.

use std::fmt;

use windlass_core::sync::atomic::{AtomicUsize, Ordering};

/// The number of senders, of weak senders or of receivers of a channel.
pub(super) struct EndCount(AtomicUsize);

impl EndCount {
    #[inline]
    pub(super) fn new(count: usize) -> EndCount {
        EndCount(AtomicUsize::new(count))
    }

    #[inline]
    pub(super) fn get(&self) -> usize {
        // Relaxed: the count is for users who ask, and orders nothing.
        self.0.load(Ordering::Relaxed)
    }

    /// True if there is one; the caller then sees what those that left had done.
    #[inline]
    pub(super) fn any(&self) -> bool {
        // Acquire: pairs with the Release in `remove`.
        self.0.load(Ordering::Acquire) > 0
    }

    #[inline]
    pub(super) fn add(&self) {
        // Relaxed: the count guards nothing by itself; who clones an end has one, so it cannot
        // reach zero meanwhile.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds an end unless the last one is gone. The exchange is atomic with the subtraction in
    /// `remove`: a channel that the last sender closes never gets another.
    pub(super) fn add_if_any(&self) -> bool {
        let mut now = self.get();
        while now > 0 {
            // Relaxed: as in `add`; the count carries nothing.
            match self
                .0
                .compare_exchange_weak(now, now + 1, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(changed) => now = changed,
            }
        }
        false
    }

    /// Returns true if this was the last one.
    #[inline]
    pub(super) fn remove(&self) -> bool {
        // AcqRel: pairs with the same of the others: what they did is there before the last one
        // closes the channel.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

impl fmt::Debug for EndCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

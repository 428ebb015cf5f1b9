//! Who is the last to arrive: a step of a flow may begin when all that it waits for have ended.
//!
//! Orderings. Each arrival releases what came before it, and the last one acquires all of them: the
//! decrements are one chain of exchanges, so AcqRel on each is enough (the Release of every
//! decrement pairs with the Acquire of the last). The last one sets the count back for the next
//! round with a Relaxed store: the round cannot end before it has, and the next one begins after
//! that (the flow's own countdown and latch order the two).

use crate::sync::atomic::{AtomicU32, Ordering};

/// Counts arrivals, round after round.
#[derive(Debug)]
pub struct Arrivals {
    missing: AtomicU32,
    expected: u32,
}

impl Arrivals {
    /// Makes a counter for rounds of `expected` arrivals.
    pub fn new(expected: u32) -> Arrivals {
        Arrivals {
            missing: AtomicU32::new(expected),
            expected,
        }
    }

    /// Counts an arrival. Returns true for the last of the round, which sees what all others did
    /// before.
    #[inline]
    pub fn arrive(&self) -> bool {
        // There is no other thread to wait for, and nothing to see that this thread did not do.
        if self.expected == 1 {
            return true;
        }
        let last = self.missing.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            self.missing.store(self.expected, Ordering::Relaxed);
        }
        last
    }
}

//! What one worker has done so far.

use crate::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread writes and any thread reads: a plain add, no read-modify-write.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline(always)]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }

    #[inline(always)]
    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn raise_to(&self, value: u64) {
        if value > self.get() {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) submitted: Counter,
    pub(crate) completed: Counter,
    pub(crate) steals_tried: Counter,
    pub(crate) steals_made: Counter,
    pub(crate) tasks_stolen: Counter,
    pub(crate) forks_stolen: Counter,
    pub(crate) slot_polls: Counter,
    pub(crate) overflows: Counter,
    pub(crate) parks: Counter,
    pub(crate) unparks: Counter,
    pub(crate) searches: Counter,
    pub(crate) budget_exhaustions: Counter,
    pub(crate) aged: Counter,
    pub(crate) panics: Counter,
    pub(crate) cancels: Counter,
    /// Tasks that have begun here and stay.
    pub(crate) pinned: Counter,
    /// Time and polls of measured batches, for the mean.
    pub(crate) run_ns: Counter,
    pub(crate) run_polls: Counter,
    pub(crate) longest_ns: Counter,
}

//! The counts of a VM.

use windlass_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::reason::ReasonKind;
use crate::slot::Slot;

/// What is counted.
#[derive(Default)]
pub(crate) struct VmCounts {
    /// Guests that run or are ready to.
    pub(super) active: AtomicUsize,
    /// Guests inside a step.
    pub(super) running: AtomicUsize,
    /// How many want nothing to run.
    pub(super) paused: AtomicUsize,
    pub(super) parked: [AtomicU64; ReasonKind::ALL.len()],
    pub(super) steps: AtomicU64,
    pub(super) asked: AtomicU64,
    pub(super) taken: AtomicU64,
}

impl VmCounts {
    pub(crate) fn parked(&self, kind: ReasonKind, by: i64) {
        // Wraps: minus one is a number, too.
        self.parked[kind as usize].fetch_add(by as u64, Ordering::Relaxed);
    }

    pub(crate) fn stepped(&self, slot: &Slot, yielded: bool) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        if yielded && slot.is_asked() {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }
}

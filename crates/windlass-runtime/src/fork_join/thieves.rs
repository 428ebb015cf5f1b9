//! Who is at stolen parts of a scope or flow: where its frame may look for work while it waits.

use windlass_core::queue::JobRef;
use windlass_core::sched::fork::Here;
use windlass_core::sync::atomic::{AtomicU64, Ordering};

/// A bit for each of the first 64 workers that is at a stolen part: what is in its deque then
/// descends from that, and the frame may take it.
#[derive(Debug, Default)]
pub(super) struct Thieves(AtomicU64);

/// A worker's bit, if it has set it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkerBit(u64);

impl Thieves {
    /// This worker begins a stolen part.
    pub(super) fn enter(&self, here: Here<'_>) -> WorkerBit {
        let bit = 1_u64.checked_shl(here.index() as u32).unwrap_or(0);
        // Relaxed: see `help`.
        let outermost = self.0.fetch_or(bit, Ordering::Relaxed) & bit == 0;
        WorkerBit(if outermost { bit } else { 0 })
    }

    /// It has ended the part, and what that left in its deque.
    pub(super) fn leave(&self, entered: WorkerBit) {
        if entered.0 != 0 {
            // Relaxed: what the worker forks later is published by the deque, and this with it.
            self.0.fetch_and(!entered.0, Ordering::Relaxed);
        }
    }

    /// A job of a worker that runs a stolen part.
    pub(super) fn help(&self, here: Here<'_>) -> Option<JobRef> {
        // Relaxed, as in `Latch::thief`: a hint where to look.
        let mut thieves = self.0.load(Ordering::Relaxed);
        while thieves != 0 {
            let bit = thieves & thieves.wrapping_neg();
            thieves &= !bit;
            // Relaxed: the deque has shown us everything that its owner did before it pushed what
            // we have seen. If the bit was cleared before that, and set again, then what was pushed
            // in between is gone, and the exchange fails.
            let still = || self.0.load(Ordering::Relaxed) & bit != 0;
            if let Some(job) = here.steal_from(bit.trailing_zeros() as usize, still) {
                return Some(job);
            }
        }
        None
    }
}

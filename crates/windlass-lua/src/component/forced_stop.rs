//! Ends an invocation by force.

use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_graph::component::Interrupt;
use windlass_vm::Bell;

use crate::preempt::Slice;

/// Ends an invocation by force.
#[derive(Default)]
pub(super) struct ForcedStop {
    asked: AtomicBool,
    /// The thread that the script runs on.
    pub(super) bell: Mutex<Option<Arc<dyn Bell>>>,
}

impl Interrupt for ForcedStop {
    fn interrupt(&self) {
        // Relaxed: the thread that runs the script gets a signal, or looks when it begins, under
        // the lock.
        self.asked.store(true, Ordering::Relaxed);
        if let Some(bell) = &*self.bell.lock() {
            bell.ring();
        }
    }

    fn forget(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }
}

impl Slice for ForcedStop {
    fn is_over(&self, _: u64) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    fn must_end(&self) -> bool {
        true
    }

    fn throws(&self) -> bool {
        true
    }

    fn granularity(&self) -> Option<u32> {
        None
    }
}

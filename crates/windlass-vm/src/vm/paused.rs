//! The guard of a stopped VM.

use std::fmt;
use std::sync::Arc;

use windlass_core::sync::atomic::Ordering;

use super::shared::VmShared;

/// No guest of the VM runs as long as this is there.
#[must_use = "guests go on when this is dropped"]
pub struct Paused(Arc<VmShared>);

impl Paused {
    /// No guest begins a step from now on.
    pub(super) fn new(shared: &Arc<VmShared>) -> Paused {
        shared.counts.paused.fetch_add(1, Ordering::SeqCst);
        Paused(shared.clone())
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if self.0.counts.paused.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.let_go();
        }
    }
}

impl fmt::Debug for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paused")
    }
}

//! Where time and events come from.

use windlass_core::sync::Arc;

use super::IoDriver;
use crate::handle::Handle;
use crate::simulator::Simulator;

/// Where the time and the events of a runtime come from.
#[derive(Debug)]
pub enum Reality {
    /// From the kernel.
    Real(Arc<IoDriver>),
    /// From a seed.
    Simulated(Arc<Simulator>),
}

impl Handle {
    /// Returns where the time and the events of this runtime come from.
    pub fn reality(&self) -> &Reality {
        &self.shared().world
    }
}

//! A process that was started.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::exit::{Exit, MonitorRef};
use crate::host::Host;

/// A process that was started: its address, and the way to wait for it. Dropping it changes
/// nothing.
pub struct ProcessHandle<M> {
    pub(super) address: Address<M>,
    pub(super) monitor: Option<MonitorRef>,
}

impl<M: Send + 'static> ProcessHandle<M> {
    /// Returns the address of the process.
    pub fn address(&self) -> Address<M> {
        self.address.clone()
    }

    /// Returns the host of the process.
    pub fn host(&self) -> Host {
        self.address.host()
    }

    /// Waits for its end.
    pub async fn join(&self) -> Exit {
        self.address.ended().await
    }

    /// Cancels the process, and kills it if it has not ended after a while.
    pub fn cancel_then_kill(&self, reason: impl Into<Arc<str>>, after: Duration) {
        self.host().cancel_then_kill(self.pid(), reason, after);
    }

    /// The monitor that it was started with.
    pub fn monitor(&self) -> Option<MonitorRef> {
        self.monitor
    }
}

impl<M> Deref for ProcessHandle<M> {
    type Target = Address<M>;

    fn deref(&self) -> &Address<M> {
        &self.address
    }
}

impl<M> fmt::Debug for ProcessHandle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessHandle({:?})", self.address)
    }
}

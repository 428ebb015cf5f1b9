//! What the processes of a host share.

use std::sync::Arc;

use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_core::sync::{Mutex, Padded};
use windlass_runtime::Handle;
use windlass_sync::lock::Notify;
use windlass_value::{NodeId, Pid};

use super::names::Names;
use super::population::Population;
use super::residents::Residents;
use super::stop::Shutdown;
use crate::command::Commands;
use crate::error::SpawnError;
use crate::groups::Groups;
use crate::mail::MailboxPolicy;
use crate::relay::Relay;
use crate::shell::Resident;

/// What the processes of a host share.
pub(crate) struct HostShared {
    pub(crate) runtime: Handle,
    pub(super) node_id: NodeId,
    pub(super) incarnation: u64,
    pub(super) is_default: bool,
    pub(super) population: Padded<Population>,
    pub(super) monitors: AtomicU64,
    pub(super) unread_at_exit: AtomicU64,
    pub(super) residents: Residents,
    pub(super) limit: usize,
    pub(crate) names: Names,
    pub(crate) groups: Groups,
    pub(crate) commands: Commands,
    pub(super) relay: Option<Arc<dyn Relay>>,
    pub(crate) mailbox: MailboxPolicy,
    pub(crate) mailbox_bytes: usize,
    /// Notified when the last process of a closed host has ended, and when a shutdown is over.
    pub(super) emptied: Notify,
    pub(super) shutdown: Mutex<Shutdown>,
}

impl HostShared {
    /// Counts one process more, unless the host is closed or full.
    pub(crate) fn reserve(&self) -> Result<(), SpawnError> {
        self.population.reserve(self.limit)
    }

    /// Gives a reservation back: the process is closed. Returns true if it was the last one of a
    /// closed host.
    pub(crate) fn release(&self) -> bool {
        self.population.release()
    }

    /// Notifies a shutdown that waits for the last process.
    pub(crate) fn notify_shutdown(&self) {
        self.emptied.notify_waiters();
    }

    pub(crate) fn new_pid(&self) -> Pid {
        let number = self.population.next_number();
        Pid::new(self.node_id, self.incarnation, number)
    }

    pub(crate) fn count_unread(&self, messages: usize) {
        if messages > 0 {
            // Relaxed: a count for people.
            self.unread_at_exit
                .fetch_add(messages as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn next_monitor(&self) -> u64 {
        self.monitors.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn enter_routing(&self, process: Arc<dyn Resident>) {
        self.residents.insert(process);
    }

    /// Returns whether new processes are refused. To be called after `enter_routing`: a shutdown
    /// that did not see the process in its shard has closed the host before, and is seen here.
    pub(crate) fn is_closed(&self) -> bool {
        self.population.is_closed()
    }

    pub(crate) fn leave_routing(&self, pid: Pid) {
        self.residents.remove(pid);
    }

    pub(super) fn is_own(&self, pid: Pid) -> bool {
        pid.node_id() == self.node_id && pid.incarnation() == self.incarnation
    }

    pub(crate) fn find(&self, pid: Pid) -> Option<Arc<dyn Resident>> {
        if !self.is_own(pid) {
            return None;
        }
        self.residents.get(pid)
    }

    /// Returns whether this PID named a process of this host that has ended.
    pub(crate) fn is_gone(&self, pid: Pid) -> bool {
        pid.node_id() == self.node_id && self.find(pid).is_none()
    }

    pub(crate) fn leave_groups(&self, pid: Pid, groups: &[Arc<str>]) {
        for group in groups {
            self.groups.remove(group, pid);
        }
    }

    pub(super) fn name(&self) -> Arc<str> {
        Pid::new(self.node_id, 0, 0).host()
    }
}

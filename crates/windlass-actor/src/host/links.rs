//! Links and monitors between processes, of which one may be on another node.

use std::sync::Arc;

use windlass_value::Pid;

use super::HostShared;
use crate::bonds::{Peer, link_here};
use crate::exit::{Bond, ExitReason, Exited, MonitorRef};
use crate::relay::RemoteSignal;
use crate::shell::Resident;

impl HostShared {
    /// Links `one` to another process. `one` is notified at once if that has ended.
    pub(crate) fn link(&self, one: &Arc<dyn Resident>, to: Pid) {
        let from = one.shell().pid;
        if from == to {
            return;
        }
        if !self.is_own(to) && to.node_id() != self.node_id {
            if one.shell().add_link(to, Peer::Elsewhere(to)) {
                self.send_signal(to, RemoteSignal::Link(from));
            }
            return;
        }
        let linked = self.find(to).is_some_and(|other| link_here(one, &other));
        if !linked && one.shell().add_link(to, Peer::Elsewhere(to)) {
            one.shell().notify_exit(Exited {
                pid: to,
                reason: ExitReason::NoProcess,
                by: Bond::Link,
            });
        }
    }

    pub(crate) fn unlink(&self, one: &dyn Resident, to: Pid) {
        // The notification of its end may be on the way; without the link it does not count.
        one.shell().remove_link(to);
        match self.find(to) {
            Some(other) => {
                other.shell().remove_link(one.shell().pid);
            }
            None if to.node_id() != self.node_id => {
                self.send_signal(to, RemoteSignal::Unlink(one.shell().pid));
            }
            None => {}
        }
    }

    /// Lets `watcher` know of the end of another process; at once if that has ended.
    pub(crate) fn monitor(&self, watcher: &Arc<dyn Resident>, target: Pid) -> MonitorRef {
        let by = watcher.shell().pid;
        let Some(id) = watcher.shell().new_monitor(target) else {
            // The watcher has ended itself: there is no process to notify.
            return MonitorRef(0);
        };
        if !self.is_own(target) && target.node_id() != self.node_id {
            self.send_signal(target, RemoteSignal::Monitor { by, id });
            return id;
        }
        let peer = Peer::Here(watcher.clone());
        let added = self
            .find(target)
            .is_some_and(|process| process.shell().add_observer(by, id, peer));
        if !added {
            watcher.shell().notify_exit(Exited {
                pid: target,
                reason: ExitReason::NoProcess,
                by: Bond::Monitor(id),
            });
        }
        id
    }

    pub(crate) fn demonitor(&self, watcher: &dyn Resident, id: MonitorRef) {
        if let Some(target) = watcher.shell().end_monitor(id) {
            self.end_monitor(target, watcher.shell().pid, id);
        }
    }

    pub(crate) fn end_monitor(&self, target: Pid, by: Pid, id: MonitorRef) {
        match self.find(target) {
            Some(process) => process.shell().remove_observer(by, id),
            None if target.node_id() != self.node_id => {
                self.send_signal(target, RemoteSignal::Demonitor { by, id });
            }
            None => {}
        }
    }
}

//! Messages and signals on their way to a process, here or on another node.

use std::sync::Arc;

use windlass_value::Pid;

use super::HostShared;
use crate::bonds::Peer;
use crate::error::{SendError, SendErrorKind};
use crate::exit::{Bond, ExitReason, Exited};
use crate::message::Message;
use crate::relay::RemoteSignal;
use crate::shell::Signal;

impl HostShared {
    pub(crate) fn route(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        if let Some(process) = self.find(to) {
            return process.deliver(message);
        }
        if to.node_id() == self.node_id {
            // It has ended, or it is of an earlier incarnation.
            let kind = SendErrorKind::NoProcess;
            return Err(SendError { message, kind });
        }
        match &self.relay {
            Some(relay) => relay.route(to, message),
            None => Err(SendError {
                message,
                kind: SendErrorKind::NoConnection,
            }),
        }
    }

    /// Sends a signal to another node. What cannot be sent is answered as if the node were lost.
    pub(crate) fn send_signal(&self, to: Pid, signal: RemoteSignal) {
        let refused = match &self.relay {
            Some(relay) => relay.route_signal(to, signal).err().map(|e| e.message),
            None => Some(signal),
        };
        let (whom, by) = match refused {
            Some(RemoteSignal::Link(from)) => (from, Bond::Link),
            Some(RemoteSignal::Monitor { by, id }) => (by, Bond::Monitor(id)),
            _ => return,
        };
        if let Some(process) = self.find(whom) {
            process.shell().notify_exit(Exited {
                pid: to,
                reason: ExitReason::NoConnection,
                by,
            });
        }
    }

    pub(super) fn receive_signal(&self, to: Pid, signal: RemoteSignal) {
        let process = self.find(to);
        let gone = |by| {
            RemoteSignal::Exited(Exited {
                pid: to,
                reason: ExitReason::NoProcess,
                by,
            })
        };
        match (signal, process) {
            (RemoteSignal::Link(from), Some(process)) => {
                if !process.shell().add_link(from, Peer::Elsewhere(from)) {
                    self.send_signal(from, gone(Bond::Link));
                }
            }
            (RemoteSignal::Link(from), None) => self.send_signal(from, gone(Bond::Link)),
            (RemoteSignal::Monitor { by, id }, Some(process)) => {
                if !process.shell().add_observer(by, id, Peer::Elsewhere(by)) {
                    self.send_signal(by, gone(Bond::Monitor(id)));
                }
            }
            (RemoteSignal::Monitor { by, id }, None) => {
                self.send_signal(by, gone(Bond::Monitor(id)));
            }
            (RemoteSignal::Unlink(from), Some(process)) => {
                process.shell().remove_link(from);
            }
            (RemoteSignal::Demonitor { by, id }, Some(process)) => {
                process.shell().remove_observer(by, id);
            }
            (RemoteSignal::Exited(exited), Some(process)) => process.shell().notify_exit(exited),
            (RemoteSignal::Cancel(reason), Some(process)) => {
                process.shell().signal(Signal::Cancel(reason));
            }
            (RemoteSignal::Kill, Some(process)) => {
                process.shell().kill();
            }
            (_, None) => {}
        }
    }

    pub(crate) fn cancel(&self, pid: Pid, reason: Arc<str>) {
        match self.find(pid) {
            Some(process) => process.shell().signal(Signal::Cancel(reason)),
            None if pid.node_id() != self.node_id => {
                self.send_signal(pid, RemoteSignal::Cancel(reason));
            }
            None => {}
        }
    }

    pub(crate) fn kill(&self, pid: Pid) {
        match self.find(pid) {
            Some(process) => {
                process.shell().kill();
            }
            None if pid.node_id() != self.node_id => self.send_signal(pid, RemoteSignal::Kill),
            None => {}
        }
    }
}

//! The way to processes on other nodes.

use std::sync::Arc;

use windlass_value::Pid;

use crate::error::{SendError, SendErrorKind};
use crate::exit::{Exited, MonitorRef};
use crate::message::Message;

/// Brings messages to processes that are not on this host.
///
/// A host asks its relay whenever a PID names another place. On the other side, the relay hands
/// what arrives to [`Host::receive`](crate::Host::receive) and
/// [`Host::receive_signal`](crate::Host::receive_signal). It keeps the order per sender and
/// receiver, or the promise about it ends there. When a node is lost, it says so with
/// [`Host::lose_node`](crate::Host::lose_node).
pub trait Relay: Send + Sync + 'static {
    /// Takes a message for `to`, or hands it back.
    fn route(&self, to: Pid, message: Message) -> Result<(), SendError<Message>>;

    /// Takes a signal for `to`, or hands it back. One that does not carries messages only: links
    /// and monitors that lead there end with `NoConnection`.
    fn route_signal(&self, _to: Pid, signal: RemoteSignal) -> Result<(), SendError<RemoteSignal>> {
        Err(SendError {
            message: signal,
            kind: SendErrorKind::NoConnection,
        })
    }
}

/// A signal between hosts about their processes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RemoteSignal {
    /// This process links itself to the receiver.
    Link(Pid),
    /// It does not any more.
    Unlink(Pid),
    /// This process wants to know of the receiver's end.
    Monitor {
        /// The process that wants to know.
        by: Pid,
        /// Which of its monitors.
        id: MonitorRef,
    },
    /// This process no longer wants to know of the receiver's end.
    Demonitor {
        /// The process that wanted to know.
        by: Pid,
        /// Which of its monitors.
        id: MonitorRef,
    },
    /// A process to which the receiver is linked, or which it monitors, has ended.
    Exited(Exited),
    /// Cancels the process, for this reason.
    Cancel(Arc<str>),
    /// The receiver is ended.
    Kill,
}

//! What a step machine is stepped with.

use std::sync::Arc;

use windlass_value::Payload;

use crate::command::YieldError;
use crate::exit::Exited;
use crate::message::Message;

/// An event of a step machine.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// What it asked for under this tag is there, or is not.
    YieldComplete {
        /// The process's own number for it.
        tag: u64,
        /// What came of it.
        result: Result<Payload, YieldError>,
    },
    /// A message from the mailbox.
    Message(Message),
    /// The process is cancelled, for this reason.
    Cancel(Arc<str>),
    /// Another process has ended: one that it monitors, or is linked to and traps links.
    Exit(Exited),
}

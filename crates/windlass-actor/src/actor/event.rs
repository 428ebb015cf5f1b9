//! What an async process is notified of.

use std::sync::Arc;

use crate::exit::Exited;

/// An event of an async process.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<M> {
    /// A message from the mailbox.
    Message(M),
    /// The process is cancelled, for this reason. Comes once.
    Cancel(Arc<str>),
    /// Another process has ended: one that it monitors, or is linked to and traps links.
    Exit(Exited),
}

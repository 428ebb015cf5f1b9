//! What the runner of a process is notified of, apart from messages.

use std::sync::Arc;

use windlass_value::Payload;

use crate::exit::Exited;

/// A notification for the runner of a process, apart from messages.
pub(crate) enum Signal {
    Cancel(Arc<str>),
    Exit(Exited),
    /// A yield is complete.
    Complete {
        tag: u64,
        epoch: u32,
        result: Result<Payload, crate::command::YieldError>,
    },
    /// A letter that is not filled in yet.
    Blank,
}

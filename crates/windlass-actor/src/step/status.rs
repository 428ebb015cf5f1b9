//! How a step ends.

use std::fmt;

use windlass_value::Payload;

use super::Upgrade;

/// How a step ends.
#[non_exhaustive]
pub enum Status {
    /// It wants another step, after all other tasks have had a turn.
    Continue,
    /// It waits for messages; with something outstanding it counts as Blocked.
    Idle,
    /// It waits for what it asked for. Messages and signals step it all the same; those that it
    /// does not take wait.
    Blocked,
    /// It has ended.
    Done(Payload),
    /// It goes on with other code.
    Upgrade(Upgrade),
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Continue => f.write_str("Continue"),
            Status::Idle => f.write_str("Idle"),
            Status::Blocked => f.write_str("Blocked"),
            Status::Done(value) => f.debug_tuple("Done").field(value).finish(),
            Status::Upgrade(_) => f.write_str("Upgrade"),
        }
    }
}

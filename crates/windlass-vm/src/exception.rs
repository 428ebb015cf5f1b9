//! How waits and calls go wrong.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use windlass_actor::command::YieldError;
use windlass_actor::{ActorError, ExitReason, Pid};
use windlass_value::Payload;

/// What guest code gets instead of a value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Exception {
    /// This guest was cancelled, for this reason. It may still clean up.
    Cancelled(Arc<str>),
    /// The task that was waited for did not end well.
    TaskFailed {
        /// The task that failed.
        task: Pid,
        /// The reason of its end.
        reason: ExitReason,
    },
    /// The channel is closed; the value of a send comes back.
    Closed(Payload),
    /// This guest has the mutex already: waiting for it would take forever.
    Relock,
    /// The guest does not have the mutex: only its owner gives it back.
    NotOwner,
    /// More permits than the semaphore will ever have.
    TooMany {
        /// How many were wanted.
        wanted: usize,
        /// How many there are.
        most: usize,
    },
    /// Nothing came in time.
    TimedOut,
    /// Blocking work panicked, with this message.
    Panicked(Arc<str>),
    /// There is no thread for blocking work.
    NoThread,
    /// A command was not carried out.
    Command(YieldError),
    /// Something else; what a function of the host says.
    Failed(Payload),
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exception::Cancelled(reason) => write!(f, "cancelled: {reason}"),
            Exception::TaskFailed { task, reason } => write!(f, "task {task} ended: {reason}"),
            Exception::Closed(_) => f.write_str("the channel is closed"),
            Exception::Relock => {
                f.write_str("the mutex is locked by this very task: unlock it first")
            }
            Exception::NotOwner => {
                f.write_str("the mutex is not locked by this task: only its owner unlocks it")
            }
            Exception::TooMany { wanted, most } => write!(
                f,
                "{wanted} permits were wanted of a semaphore that has {most}: it would never have them"
            ),
            Exception::TimedOut => f.write_str("timed out"),
            Exception::Panicked(message) => write!(f, "blocking work panicked: {message}"),
            Exception::NoThread => f.write_str("there is no thread for blocking work"),
            Exception::Command(error) => fmt::Display::fmt(error, f),
            Exception::Failed(Payload::Text(text)) => f.write_str(text),
            Exception::Failed(value) => write!(f, "{value:?}"),
        }
    }
}

impl Error for Exception {}

impl Exception {
    /// The end of a guest that does not catch it.
    pub fn into_actor_error(self) -> ActorError {
        match self {
            Exception::Cancelled(reason) => ActorError::cancelled(reason),
            Exception::Failed(value) => ActorError::new(value),
            other => ActorError::new(other.to_string()),
        }
    }
}

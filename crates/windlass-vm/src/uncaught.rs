//! Failures that were never awaited.

use std::fmt;

use windlass_actor::{ExitReason, Pid};

/// A failure of a task that was never awaited.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Uncaught {
    /// The task that failed.
    pub task: Pid,
    /// Why it failed.
    pub reason: ExitReason,
}

impl fmt::Display for Uncaught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "task {} failed and nobody awaited it: {}",
            self.task, self.reason
        )
    }
}

//! A supervision tree as plain data, and as text.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_value::Pid;

use super::Strategy;
use super::child::Restart;
use crate::exit::ExitReason;

/// A supervisor and everything below it at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tree {
    /// The PID of the supervisor.
    pub pid: Pid,
    /// What it does when a child ends.
    pub strategy: Strategy,
    /// Its children, in the order of their start.
    pub children: Vec<TreeChild>,
}

/// A child in a [`Tree`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TreeChild {
    /// What its supervisor calls it.
    pub id: Arc<str>,
    /// Its process, if it runs.
    pub pid: Option<Pid>,
    /// When it is started again.
    pub restart: Restart,
    /// How often it was.
    pub restarts: u64,
    /// How it last ended, or why it did not start again.
    pub last_end: Option<ExitReason>,
    /// In what time it is tried again, if it is.
    pub waits: Option<Duration>,
    /// What is below it, if it is a supervisor and has answered.
    pub below: Option<Box<Tree>>,
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.strategy)?;
        self.draw(f, "")
    }
}

impl Tree {
    fn draw(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        for (number, child) in self.children.iter().enumerate() {
            let is_last = number + 1 == self.children.len();
            let (branch, below) = if is_last {
                ("└─ ", "   ")
            } else {
                ("├─ ", "│  ")
            };
            write!(f, "\n{indent}{branch}{child}")?;
            if let Some(tree) = &child.below {
                write!(f, ", {}", tree.strategy)?;
                tree.draw(f, &format!("{indent}{below}"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for TreeChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let restart = match self.restart {
            Restart::Permanent => "permanent",
            Restart::Transient => "transient",
            Restart::Temporary => "temporary",
        };
        write!(f, "{} ", self.id)?;
        match (self.pid, self.waits) {
            (Some(pid), _) => write!(f, "{pid}")?,
            (None, Some(waits)) => write!(f, "(again in {waits:?})")?,
            (None, None) => f.write_str("(stopped)")?,
        }
        write!(f, " {restart}")?;
        match self.restarts {
            0 => {}
            1 => f.write_str(", restarted once")?,
            times => write!(f, ", restarted {times} times")?,
        }
        match &self.last_end {
            Some(reason) => write!(f, " (last: {reason})"),
            None => Ok(()),
        }
    }
}

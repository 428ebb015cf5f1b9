//! Values that cannot be sent.

use std::fmt::{self};

/// A value that cannot be sent, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsendable {
    pub(super) what: String,
    pub(super) path: String,
    pub(super) advice: &'static str,
}

pub(super) const SENDABLE: &str =
    "send numbers, strings, booleans, PIDs, buffers, and tables of those";

pub(super) const TOO_LARGE: &str = "it has to fit into what is left of the memory of its process: send less at once, or raise that";

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be sent", self.what)?;
        if !self.path.is_empty() {
            write!(f, " (at {})", self.path)?;
        }
        write!(f, ": {}", self.advice)
    }
}

impl std::error::Error for Unsendable {}

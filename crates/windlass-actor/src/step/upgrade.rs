//! Other code for a step machine.

use std::fmt;

use windlass_value::Payloads;

use super::Process;

/// Other code for a process: it keeps the PID, names, groups, links, monitors and all unread
/// messages. What the old code had asked for is forgotten.
pub struct Upgrade {
    pub(super) process: Box<dyn Process>,
    pub(super) method: String,
    pub(super) input: Payloads,
}

impl Upgrade {
    /// Goes on with this, at its entry point `main`.
    pub fn to(process: impl Process) -> Upgrade {
        Upgrade {
            process: Box::new(process),
            method: "main".to_owned(),
            input: Payloads::new(),
        }
    }

    /// Another entry point.
    pub fn method(mut self, method: impl Into<String>) -> Upgrade {
        self.method = method.into();
        self
    }

    /// What the new code is given.
    pub fn input(mut self, input: Payloads) -> Upgrade {
        self.input = input;
        self
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrade")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

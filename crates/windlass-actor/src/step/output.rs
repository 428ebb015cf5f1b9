//! What a step asks for.

use std::fmt;

use crate::command::AnyCommand;

/// What a step asks for.
#[derive(Default)]
pub struct Output {
    pub(super) requests: Vec<(u64, AnyCommand)>,
}

impl Output {
    /// Asks for something under a tag of the process's own choice; the answer is an event with that
    /// tag. Answers may come in any order.
    pub fn request<C: Send + 'static>(&mut self, tag: u64, command: C) {
        self.requests.push((tag, AnyCommand::new(command)));
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("requests", &self.requests.len())
            .finish()
    }
}

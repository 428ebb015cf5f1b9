//! Invocations that a trigger has made and that have not been called yet.

use std::collections::VecDeque;

use crate::component::Received;

/// Invocations that are ready: the inputs of each. The lists are used again.
#[derive(Debug, Default)]
pub(crate) struct ReadyCalls {
    pub(crate) list: VecDeque<Vec<Received>>,
    spare: Vec<Vec<Received>>,
}

/// How many emptied lists are kept for the next invocations.
const SPARE: usize = 1024;

impl ReadyCalls {
    /// Returns an empty list for the inputs of an invocation.
    pub(crate) fn fresh(&mut self) -> Vec<Received> {
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps a list for a later invocation.
    pub(crate) fn recycle(&mut self, mut inputs: Vec<Received>) {
        inputs.clear();
        if self.spare.len() < SPARE {
            self.spare.push(inputs);
        }
    }

    /// Adds an invocation for one message.
    pub(crate) fn push_one(&mut self, message: Received) {
        let mut inputs = self.fresh();
        inputs.push(message);
        self.list.push_back(inputs);
    }

    /// Adds an invocation for these messages.
    pub(crate) fn push_all(&mut self, messages: impl Iterator<Item = Received>) {
        let mut inputs = self.fresh();
        inputs.extend(messages);
        self.list.push_back(inputs);
    }
}

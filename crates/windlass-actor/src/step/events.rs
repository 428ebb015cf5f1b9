//! The events of one step.

use std::collections::VecDeque;
use std::fmt;

use super::Event;
use crate::mail::{ReadBy, Reader};
use crate::message::{Message, Pattern};
use crate::shell::Core;

/// What is there for a step: a cursor. What is not taken stays.
pub struct Events<'a> {
    pub(super) core: &'a Core<Message>,
    pub(super) first: &'a mut VecDeque<Event>,
    pub(super) reader: &'a mut Reader<Message>,
    pub(super) outstanding: &'a mut usize,
    pub(super) taken: bool,
}

impl Events<'_> {
    /// The next event: signals and completions first, then messages, each in the order of arrival.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that is not exhausted by None would surprise"
    )]
    pub fn next(&mut self) -> Option<Event> {
        let event = match self.first.pop_front() {
            Some(event) => event,
            None => Event::Message(self.reader.take(&self.core.mail, ReadBy::OwnTurn)?),
        };
        if let Event::YieldComplete { .. } = event {
            *self.outstanding = self.outstanding.saturating_sub(1);
        }
        self.taken = true;
        Some(event)
    }

    /// The next signal or completion; messages stay.
    pub fn next_signal(&mut self) -> Option<Event> {
        if self.first.is_empty() {
            return None;
        }
        self.next()
    }

    /// The next message with such a topic; the others stay, in their order.
    pub fn next_message(&mut self, pattern: &Pattern) -> Option<Message> {
        let wanted = |message: &Message| pattern.matches(message.topic.as_str());
        let message = self
            .reader
            .take_where(&self.core.mail, ReadBy::OwnTurn, wanted)?;
        self.taken = true;
        Some(message)
    }
}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("signals", &self.first.len())
            .finish_non_exhaustive()
    }
}

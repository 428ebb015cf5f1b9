//! The messages of a mailbox that drops its oldest one.

use std::collections::VecDeque;

pub(super) struct Ring<M> {
    /// Each with its bytes; 0 if it is light.
    pub(super) messages: VecDeque<(M, usize)>,
    /// The bytes of all of them.
    pub(super) bytes: usize,
    pub(super) capacity: usize,
    pub(super) closed: bool,
}

impl<M> Ring<M> {
    /// Takes the message at this place out, with its bytes.
    pub(super) fn take(&mut self, place: usize) -> Option<M> {
        let (message, bytes) = self.messages.remove(place)?;
        self.bytes -= bytes;
        Some(message)
    }
}

//! The reading end of a mailbox.

use windlass_core::queue::Inbox;

use super::{Mail, Storage};

/// The task that reads: the process in its own turn, which gives room back when the turn ends, or
/// another task that has its context, and gives it back at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadBy {
    OwnTurn,
    Another,
}

/// The reading end: there is one for each mailbox.
pub(crate) struct Reader<M> {
    inbox: Inbox<M>,
}

impl<M> Reader<M> {
    pub(crate) const fn new() -> Reader<M> {
        Reader {
            inbox: Inbox::new(),
        }
    }

    /// Takes the oldest message.
    #[inline]
    pub(crate) fn take(&mut self, mail: &Mail<M>, by: ReadBy) -> Option<M> {
        let letters = match &mail.storage {
            Storage::Queue { letters, .. } => letters,
            Storage::Ring(ring) => return ring.lock().take(0),
        };
        let message = self.inbox.pop().or_else(|| {
            self.inbox.fetch(letters);
            self.inbox.pop()
        })?;
        mail.lighten(&message);
        mail.took_one(by);
        Some(message)
    }

    /// Takes the oldest message that `wanted` says yes to.
    pub(crate) fn take_where(
        &mut self,
        mail: &Mail<M>,
        by: ReadBy,
        mut wanted: impl FnMut(&M) -> bool,
    ) -> Option<M> {
        let letters = match &mail.storage {
            Storage::Queue { letters, .. } => letters,
            Storage::Ring(ring) => {
                let mut ring = ring.lock();
                let mut messages = ring.messages.iter();
                let place = messages.position(|(message, _)| wanted(message))?;
                return ring.take(place);
            }
        };
        self.inbox.fetch(letters);
        let message = self.inbox.pop_where(&mut wanted)?;
        mail.lighten(&message);
        mail.took_one(by);
        Some(message)
    }

    /// Fetches new mail. Returns true if there is some. The reader is not woken for mail that it
    /// has not fetched. A ring does not distinguish old from new; there each message wakes.
    pub(crate) fn has_new_mail(&mut self, mail: &Mail<M>) -> bool {
        match &mail.storage {
            Storage::Queue { letters, .. } => self.inbox.fetch(letters),
            Storage::Ring(ring) => !ring.lock().messages.is_empty(),
        }
    }

    /// Whether nothing is here that could be taken.
    pub(crate) fn is_empty(&self, mail: &Mail<M>) -> bool {
        match &mail.storage {
            Storage::Queue { .. } => self.inbox.is_empty(),
            Storage::Ring(ring) => ring.lock().messages.is_empty(),
        }
    }
}

//! How many messages a mailbox holds.

/// How many messages may wait in a mailbox, and what happens to one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MailboxPolicy {
    /// At most this number. [`send`](crate::Address::send) waits for room,
    /// [`tell`](crate::Address::tell) fails.
    Bounded(usize),
    /// At most this number. The oldest makes room for the newest, and is counted.
    DropOldest(usize),
    /// At most this number. Further messages are dropped and counted.
    DropNewest(usize),
    /// Any number: the senders decide how much memory this takes.
    Unbounded,
}

impl Default for MailboxPolicy {
    fn default() -> Self {
        MailboxPolicy::Bounded(1024)
    }
}

impl MailboxPolicy {
    /// Whether a mailbox can be like this.
    pub(crate) fn is_possible(self) -> bool {
        match self {
            MailboxPolicy::Bounded(most)
            | MailboxPolicy::DropOldest(most)
            | MailboxPolicy::DropNewest(most) => (1..=MOST).contains(&most),
            MailboxPolicy::Unbounded => true,
        }
    }
}

/// The most messages of a bounded mailbox.
const MOST: usize = u32::MAX as usize;

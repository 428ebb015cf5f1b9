//! Capacity for messages in a queue.

use windlass_sync::lock::{Semaphore, SemaphorePermit};

pub(super) struct Capacity {
    pub(super) free: Semaphore,
    pub(super) capacity: u32,
    pub(super) drops_newest: bool,
}

/// The room for one message in a queue, in bytes and in messages. It goes back if it is not used.
pub(crate) struct Reservation<'a> {
    pub(super) bytes: Option<SemaphorePermit<'a>>,
    pub(super) message: Option<SemaphorePermit<'a>>,
}

impl Reservation<'_> {
    /// The message is in the mailbox: the process gives the room back when it reads it.
    pub(super) fn keep(self) {
        self.bytes.into_iter().for_each(SemaphorePermit::forget);
        self.message.into_iter().for_each(SemaphorePermit::forget);
    }
}

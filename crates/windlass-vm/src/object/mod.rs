//! What guests wait for together: channels, mutexes, semaphores.
//!
//! Each has its state and its queue of waiters under one lock, and hands over directly: the longest
//! waiter is given the value, the mutex or the permits, and does not have to try again. A waiter
//! that is no longer there (cancelled, withdrawn, dead) says so when it is given something, and the
//! next one gets it.

mod channel;
mod mutex;
mod semaphore;

use std::sync::Arc;

use windlass_sync::park::Generation;

pub use self::channel::Channel;
pub use self::mutex::Mutex;
pub use self::semaphore::Semaphore;
use crate::guest::Ending;
use crate::guest_shared::GuestShared;

/// One wait of one guest, in the queue of something.
#[derive(Clone)]
pub(crate) struct Waiter {
    pub(crate) guest: Arc<GuestShared>,
    pub(crate) generation: Generation,
}

impl Waiter {
    /// Ends the wait and wakes the guest; the ending comes back if the wait is over.
    pub(crate) fn end(&self, ending: Ending) -> Result<(), Ending> {
        self.guest.end_wait(self.generation, ending)
    }

    pub(crate) fn is(&self, guest: &Arc<GuestShared>, generation: Generation) -> bool {
        self.generation == generation && Arc::ptr_eq(&self.guest, guest)
    }
}

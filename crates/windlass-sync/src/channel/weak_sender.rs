//! A sender that does not keep its channel open.

use std::fmt;

use windlass_core::sync::Arc;
use windlass_core::sync::atomic::Ordering;

use super::core::Core;
use super::sender::Sender;

/// Gives a [`Sender`] while there is another one; does not keep the channel open by itself.
pub struct WeakSender<T> {
    core: Arc<Core<T>>,
}

impl<T> WeakSender<T> {
    pub(super) fn new(core: Arc<Core<T>>) -> WeakSender<T> {
        // Relaxed: the count is for users who ask, and orders nothing.
        core.weak_senders().fetch_add(1, Ordering::Relaxed);
        WeakSender { core }
    }

    /// Returns a sender; none if the last one is gone.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.core.add_sender_if_any().then(|| Sender {
            core: self.core.clone(),
        })
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.core.sender_count()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.core.weak_senders().load(Ordering::Relaxed)
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender::new(self.core.clone())
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        // Relaxed: as in `new`.
        self.core.weak_senders().fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("WeakSender", f)
    }
}

//! A sender that does not keep its channel open.

use std::fmt;

use windlass_core::sync::Arc;

use super::core::Core;
use super::sender::Sender;

/// Gives a [`Sender`] while there is another one; does not keep the channel open by itself.
pub struct WeakSender<T> {
    core: Arc<Core<T>>,
}

impl<T> WeakSender<T> {
    pub(super) fn new(core: Arc<Core<T>>) -> WeakSender<T> {
        core.weak_senders.add();
        WeakSender { core }
    }

    /// Returns a sender; none if the last one is gone.
    pub fn upgrade(&self) -> Option<Sender<T>> {
        self.core.senders.add_if_any().then(|| Sender {
            core: self.core.clone(),
        })
    }

    /// Returns the number of senders.
    pub fn strong_count(&self) -> usize {
        self.core.senders.get()
    }

    /// Returns the number of weak senders.
    pub fn weak_count(&self) -> usize {
        self.core.weak_senders.get()
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender::new(self.core.clone())
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        let _last = self.core.weak_senders.remove();
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.debug("WeakSender", f)
    }
}

//! A ready queue for a set of futures: only members whose waker fired are polled again.

use std::collections::VecDeque;
use std::task::{Context, Poll, Wake, Waker};

use windlass_core::sync::{Arc, Mutex};
use windlass_core::task::Budget;

/// The keys of the members whose wakers fired, the oldest first, and the waker of the set's owner.
#[derive(Default)]
pub(crate) struct ReadySet(Mutex<(VecDeque<u64>, Option<Waker>)>);

struct Member {
    key: u64,
    set: Arc<ReadySet>,
}

impl Wake for Member {
    fn wake(self: Arc<Self>) {
        self.set.add(self.key);
    }
}

impl ReadySet {
    /// Returns the waker of a new member. The member is polled once without being woken.
    pub(crate) fn join(self: &Arc<Self>, key: u64) -> Waker {
        self.add(key);
        Waker::from(Arc::new(Member {
            key,
            set: self.clone(),
        }))
    }

    fn add(&self, key: u64) {
        let mut ready = self.0.lock();
        ready.0.push_back(key);
        let waker = ready.1.take();
        drop(ready);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the key of the next member to poll.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<u64> {
        // Members spend the budget. Without any left they would all report pending and ask to be
        // polled again, here, for ever.
        if Budget::current().remaining() == Some(0) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut ready = self.0.lock();
        if let Some(key) = ready.0.pop_front() {
            return Poll::Ready(key);
        }
        let old = ready.1.replace(cx.waker().clone());
        drop(ready);
        // Dropped outside of the lock: a waker's drop may run anything.
        drop(old);
        Poll::Pending
    }
}

//! Members of a set that were woken, and whom to tell: only those are polled.

use std::collections::VecDeque;
use std::task::{Context, Poll, Wake, Waker};

use windlass_core::sync::{Arc, Mutex};
use windlass_core::task::Budget;

/// The keys of those who were woken, oldest first.
#[derive(Default)]
pub(crate) struct ReadySet(Mutex<(VecDeque<u64>, Option<Waker>)>);

struct Member {
    key: u64,
    woken: Arc<ReadySet>,
}

impl Wake for Member {
    fn wake(self: Arc<Self>) {
        self.woken.add(self.key);
    }
}

impl ReadySet {
    /// The waker of a new member, which is looked at for the first time without being woken.
    pub(crate) fn join(self: &Arc<Self>, key: u64) -> Waker {
        self.add(key);
        Waker::from(Arc::new(Member {
            key,
            woken: self.clone(),
        }))
    }

    fn add(&self, key: u64) {
        let mut woken = self.0.lock();
        woken.0.push_back(key);
        let waker = woken.1.take();
        drop(woken);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next member to look at.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<u64> {
        // Members spend the budget. Without any left they would all report pending and ask to be
        // looked at again, here, for ever.
        if Budget::current().remaining() == Some(0) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut woken = self.0.lock();
        if let Some(key) = woken.0.pop_front() {
            return Poll::Ready(key);
        }
        let old = woken.1.replace(cx.waker().clone());
        drop(woken);
        // Dropped outside of the lock: a waker's drop may run anything.
        drop(old);
        Poll::Pending
    }
}

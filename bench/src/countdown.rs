//! Waiting for many tasks without a join handle.

use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};

/// Work left to do. Every task counts down once, and the last one wakes the one waiter.
pub struct Countdown {
    left: AtomicUsize,
    waiter: Mutex<Option<Waker>>,
}

impl Countdown {
    pub fn from(count: usize) -> Self {
        Countdown {
            left: AtomicUsize::new(count),
            waiter: Mutex::new(None),
        }
    }

    /// One piece of work is done. Panics if more is done than there was.
    pub fn done(&self) {
        // AcqRel: the waiter sees what every finished task wrote.
        let before = self.left.fetch_sub(1, Ordering::AcqRel);
        assert_ne!(before, 0, "more tasks ended than were spawned");
        if before == 1
            && let Some(waiter) = self.waiter.lock().unwrap().take()
        {
            waiter.wake();
        }
    }

    /// Resolves when all of it is done.
    ///
    /// The waiter looks again after leaving its waker. The last task either comes later, and finds
    /// the waker, or came first, and is seen: both go through the mutex.
    pub async fn finished(&self) {
        poll_fn(|context| {
            if self.left.load(Ordering::Acquire) == 0 {
                return Poll::Ready(());
            }
            *self.waiter.lock().unwrap() = Some(context.waker().clone());
            match self.left.load(Ordering::Acquire) {
                0 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
        .await;
    }
}

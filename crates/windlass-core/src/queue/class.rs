//! The queues of the classes other than normal: one FIFO each, per pool.
//!
//! They are rare and short, so a lock each is enough. What every pick of every worker pays for
//! them is one relaxed load of `pending`.

use std::collections::VecDeque;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::task::{Class, Entry};
use crate::tuning::{BACKGROUND_AGE_NS, LOW_AGE_NS};

/// The three queues.
#[derive(Debug, Default)]
pub struct Classes {
    pending: AtomicUsize,
    queues: [ClassQueue; 3],
}

#[derive(Debug, Default)]
struct ClassQueue {
    len: AtomicUsize,
    /// When the head was queued; `u64::MAX` while empty.
    oldest: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    closed: bool,
}

fn index(class: Class) -> usize {
    match class {
        Class::Normal => unreachable!("normal tasks live in rings and the injector"),
        Class::High => 0,
        Class::Low => 1,
        Class::Background => 2,
    }
}

impl Classes {
    /// Queues an entry of a class other than normal; gives it back when closed.
    pub fn push(&self, class: Class, entry: Entry, now: u64) -> Result<(), Entry> {
        let queue = &self.queues[index(class)];
        let mut inner = queue.inner.lock();
        if inner.closed {
            return Err(entry);
        }
        entry.header().meta().set_queued_at(now);
        inner.entries.push_back(entry);
        queue.publish(&inner);
        self.pending.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// True if any class has something queued: one load.
    #[inline]
    pub fn any(&self) -> bool {
        self.pending.load(Ordering::Relaxed) != 0
    }

    /// Entries queued in `class`.
    pub fn len(&self, class: Class) -> usize {
        self.queues[index(class)].len.load(Ordering::Relaxed)
    }

    /// The oldest entry of `class`.
    pub fn pop(&self, class: Class) -> Option<Entry> {
        let queue = &self.queues[index(class)];
        if queue.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut inner = queue.inner.lock();
        let entry = inner.entries.pop_front()?;
        queue.publish(&inner);
        self.pending.fetch_sub(1, Ordering::Relaxed);
        Some(entry)
    }

    /// The head of low or background, if it has waited for longer than its class allows.
    pub fn pop_aged(&self, now: u64) -> Option<Entry> {
        let due = |class, bound| {
            let queue = &self.queues[index(class)];
            queue.len.load(Ordering::Relaxed) > 0
                && now.saturating_sub(queue.oldest.load(Ordering::Relaxed)) > bound
        };
        if due(Class::Low, LOW_AGE_NS)
            && let Some(entry) = self.pop(Class::Low)
        {
            return Some(entry);
        }
        if due(Class::Background, BACKGROUND_AGE_NS) {
            return self.pop(Class::Background);
        }
        None
    }

    /// Closes all three if all are empty; true if they are closed now.
    pub fn close_if_empty(&self) -> bool {
        let mut guards: Vec<_> = self.queues.iter().map(|queue| queue.inner.lock()).collect();
        if guards.iter().any(|inner| !inner.entries.is_empty()) {
            return false;
        }
        guards.iter_mut().for_each(|inner| inner.closed = true);
        true
    }
}

impl ClassQueue {
    fn publish(&self, inner: &Inner) {
        self.len.store(inner.entries.len(), Ordering::Relaxed);
        let oldest = inner
            .entries
            .front()
            .map_or(u64::MAX, |entry| entry.header().meta().queued_at());
        self.oldest.store(oldest, Ordering::Relaxed);
    }
}

//! The pool's shared queue: spawns and wakes from outside, and what overflows a ring.
//!
//! Two halves. The *inbox* is a stack that any thread pushes to with one exchange, a batch as
//! cheaply as an item. The *outbox* is a list in the order of arrival, behind a lock that a
//! consumer takes once per batch; when it is empty the consumer takes the whole inbox and turns it
//! round.
//!
//! A push never follows a pointer it does not own, and there is no half-done push that a consumer
//! would have to wait for. The push is *announced* by adding to `len` after the exchange: a thread
//! that looks at `is_empty` after its fence either sees that, or the pusher, after its own fence,
//! sees them asleep (SLEEP.md).
//!
//! Closing puts a mark where the inbox was, which no push can replace.
//!
//! Rejected: a lock around one list (in a prototype 87 ns a spawn instead of 41, and three threads
//! on two cores convoy on it); a swap-push queue (its emptiness check can read a node that another
//! consumer freed, and a push that is preempted between its two stores stops every thread).

use std::ptr::NonNull;

use crate::queue::batch::{Batch, Linked};
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::sync::{Mutex, Padded};

/// The queue is closed; the caller keeps its items.
#[derive(Debug)]
pub struct Closed<T>(pub T);

/// A shared FIFO with batches at both ends.
#[derive(Debug)]
pub struct Injector<T: Linked> {
    inbox: Padded<AtomicPtr<T>>,
    /// Items announced and not yet taken. Wraps below zero for the moment in which an item has
    /// been taken but not yet announced.
    len: AtomicUsize,
    outbox: Padded<Mutex<Outbox<T>>>,
}

#[derive(Debug)]
struct Outbox<T>(*mut T);

// SAFETY: the items in the queue belong to the queue; `T`s are handed on, not shared.
unsafe impl<T: Linked + Send> Send for Injector<T> {}
// SAFETY: as above.
unsafe impl<T: Linked + Send> Sync for Injector<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Outbox<T> {}

fn closed_mark<T>() -> *mut T {
    std::ptr::without_provenance_mut(1)
}

impl<T: Linked> Default for Injector<T> {
    fn default() -> Self {
        Injector {
            inbox: Padded(AtomicPtr::new(std::ptr::null_mut())),
            len: AtomicUsize::new(0),
            outbox: Padded(Mutex::new(Outbox(std::ptr::null_mut()))),
        }
    }
}

impl<T: Linked> Injector<T> {
    /// Queues one item.
    ///
    /// # Safety
    /// The caller owns `item`, and it stays alive while it is queued.
    #[inline]
    pub unsafe fn push(&self, item: NonNull<T>) -> Result<(), Closed<NonNull<T>>> {
        self.link(item.as_ptr(), item.as_ptr(), 1)
            .map_err(|()| Closed(item))
    }

    /// Queues a batch with one exchange.
    pub fn push_batch(&self, batch: Batch<T>) -> Result<(), Closed<Batch<T>>> {
        if batch.is_empty() {
            return Ok(());
        }
        self.link(batch.newest, batch.oldest, batch.len)
            .map_err(|()| Closed(batch))
    }

    #[inline]
    fn link(&self, newest: *mut T, oldest: *mut T, count: usize) -> Result<(), ()> {
        let mut top = self.inbox.load(Ordering::Relaxed);
        loop {
            if top == closed_mark() {
                return Err(());
            }
            // SAFETY: the chain is ours until the exchange succeeds.
            unsafe { &*oldest }.link().store(top, Ordering::Relaxed);
            // Release: pairs with the Acquire swap in `take`: the consumer sees the items.
            match self.inbox.compare_exchange_weak(
                top,
                newest,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(changed) => top = changed,
            }
        }
        // Relaxed: the pusher's `fence(SeqCst)` before it looks for sleepers orders it.
        self.len.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// Takes up to `most` items, oldest first, and calls `give` with each.
    pub fn take(&self, most: usize, mut give: impl FnMut(NonNull<T>)) -> usize {
        let mut outbox = self.outbox.lock();
        let mut taken = 0;
        while taken < most {
            let Some(item) = outbox.pop(&self.inbox) else {
                break;
            };
            give(item);
            taken += 1;
        }
        if taken > 0 {
            self.len.fetch_sub(taken, Ordering::Relaxed);
        }
        taken
    }

    /// Returns the number of queued items without taking the lock; it may be outdated at once.
    #[inline]
    pub fn len(&self) -> usize {
        (self.len.load(Ordering::Relaxed) as isize).max(0) as usize
    }

    /// True if nothing is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let top = self.inbox.load(Ordering::Relaxed);
        (top.is_null() || top == closed_mark()) && self.len() == 0
    }

    /// Closes the queue if nothing is in it; true if it is closed now.
    pub fn close_if_empty(&self) -> bool {
        let outbox = self.outbox.lock();
        if !outbox.0.is_null() {
            return false;
        }
        let mark = closed_mark();
        let closed = self.inbox.compare_exchange(
            std::ptr::null_mut(),
            mark,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        closed.is_ok() || closed == Err(mark)
    }
}

impl<T: Linked> Outbox<T> {
    fn pop(&mut self, inbox: &AtomicPtr<T>) -> Option<NonNull<T>> {
        if self.0.is_null() {
            self.turn_round(inbox);
        }
        let item = NonNull::new(self.0)?;
        // SAFETY: items in the outbox are the queue's, and we hold its lock.
        self.0 = unsafe { item.as_ref() }.link().load(Ordering::Relaxed);
        Some(item)
    }

    /// Takes the whole inbox, newest first, and leaves it here oldest first.
    fn turn_round(&mut self, inbox: &AtomicPtr<T>) {
        let top = inbox.load(Ordering::Relaxed);
        if top.is_null() || top == closed_mark() {
            return;
        }
        // Acquire: pairs with the Release exchange in `link`. Only a consumer with the lock takes
        // or closes, so this is not the mark.
        let mut item = inbox.swap(std::ptr::null_mut(), Ordering::Acquire);
        while let Some(there) = NonNull::new(item) {
            // SAFETY: the swap made the whole chain ours.
            let link = unsafe { there.as_ref() }.link();
            item = link.load(Ordering::Relaxed);
            link.store(self.0, Ordering::Relaxed);
            self.0 = there.as_ptr();
        }
    }
}

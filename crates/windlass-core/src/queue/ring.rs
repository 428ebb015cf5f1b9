//! A worker's local queue: a bounded FIFO that others steal half of.
//!
//! ```text
//! head = { steal: u32, real: u32 }   tail: u32      (free-running, taken modulo the capacity)
//!
//!   steal          real            tail
//!     |--- claimed --|---- queued ---|
//! ```
//! *Push* (owner) writes the slot at `tail`, then advances `tail`. There is room while
//! `tail - steal < CAPACITY`: slots a thief still copies from are not overwritten.
//! *Pop* (owner) advances `real`, and `steal` with it when no thief is at work.
//! *Steal* claims by advancing `real` alone, which hides the tasks from the owner; copies them;
//! then releases by setting `steal := real`, retrying until that succeeds, since the owner may pop
//! meanwhile. `steal != real` means a thief is at work, and at most one is.
//!
//! Both heads are 32 bits wide: 2^32 operations would have to pass within one exchange for a
//! wrap-around to be mistaken.
//!
//! Orderings. `tail`: the Release store in `push` pairs with the Acquire load in `steal_into`, so
//! that the thief sees the slots (and the tasks in them). `head`: each exchange is AcqRel. The
//! owner's Acquire load of `head` in `push` pairs with the thief's release exchange: the thief has
//! read the slots before the owner writes them again.

use std::ptr::NonNull;

use crate::queue::batch::{Batch, Linked};
use crate::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Padded, hint};
use crate::tuning::RING_CAPACITY;

const MASK: u32 = RING_CAPACITY as u32 - 1;
const HALF: u32 = RING_CAPACITY as u32 / 2;
const _: () = assert!(RING_CAPACITY.is_power_of_two());

/// The ring of one worker.
#[derive(Debug)]
pub struct Ring<T> {
    head: Padded<AtomicU64>,
    tail: Padded<AtomicU32>,
    slots: Box<[AtomicPtr<T>; RING_CAPACITY]>,
}

fn pack(steal: u32, real: u32) -> u64 {
    ((steal as u64) << 32) | real as u64
}

fn unpack(head: u64) -> (u32, u32) {
    ((head >> 32) as u32, head as u32)
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Ring<T> {
    /// An empty ring.
    pub fn new() -> Ring<T> {
        Ring {
            head: Padded(AtomicU64::new(0)),
            tail: Padded(AtomicU32::new(0)),
            slots: Box::new(std::array::from_fn(
                |_| AtomicPtr::new(std::ptr::null_mut()),
            )),
        }
    }

    /// Returns the number of queued items; it may be outdated at once.
    pub fn len(&self) -> usize {
        let (_, real) = unpack(self.head.load(Ordering::Acquire));
        let tail = self.tail.load(Ordering::Acquire);
        // The two loads are not one: a pop in between can make it look negative.
        (tail.wrapping_sub(real) as i32).max(0) as usize
    }

    /// True if nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Owner: room for how many more.
    pub fn room(&self) -> usize {
        let (steal, _) = unpack(self.head.load(Ordering::Acquire));
        let tail = self.tail.load(Ordering::Relaxed);
        RING_CAPACITY - tail.wrapping_sub(steal) as usize
    }

    /// Owner: queues `item`; gives it back when there is no room.
    #[inline]
    pub fn push(&self, item: NonNull<T>) -> Result<(), NonNull<T>> {
        // Acquire: pairs with the release exchange of a thief.
        let (steal, _) = unpack(self.head.load(Ordering::Acquire));
        // Relaxed: only the owner writes `tail`.
        let tail = self.tail.load(Ordering::Relaxed);
        if tail.wrapping_sub(steal) >= RING_CAPACITY as u32 {
            return Err(item);
        }
        self.slots[(tail & MASK) as usize].store(item.as_ptr(), Ordering::Relaxed);
        // Release: pairs with the Acquire load in `steal_into`.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Owner: takes the oldest item.
    #[inline]
    pub fn pop(&self) -> Option<NonNull<T>> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let (steal, real) = unpack(head);
            // Relaxed: only the owner writes `tail`.
            if real == self.tail.load(Ordering::Relaxed) {
                return None;
            }
            let next = real.wrapping_add(1);
            let new = if steal == real {
                pack(next, next)
            } else {
                pack(steal, next)
            };
            match self
                .head
                .compare_exchange(head, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    let item = self.slots[(real & MASK) as usize].load(Ordering::Relaxed);
                    // What comes after it, if anything: a hint, never followed.
                    hint::prefetch(self.slots[(next & MASK) as usize].load(Ordering::Relaxed));
                    return NonNull::new(item);
                }
                Err(changed) => head = changed,
            }
        }
    }

    /// Owner, with a full ring: takes the older half out as one batch. None: a thief is making
    /// room at this moment.
    pub fn take_half(&self) -> Option<Batch<T>>
    where
        T: Linked,
    {
        let head = self.head.load(Ordering::Acquire);
        let (steal, real) = unpack(head);
        let tail = self.tail.load(Ordering::Relaxed);
        if steal != real || tail.wrapping_sub(real) < HALF {
            return None;
        }
        let next = real.wrapping_add(HALF);
        // Fails only if a thief claimed meanwhile, and then there will be room.
        self.head
            .compare_exchange(head, pack(next, next), Ordering::AcqRel, Ordering::Relaxed)
            .ok()?;
        let mut batch = Batch::default();
        for index in 0..HALF {
            let slot = &self.slots[(real.wrapping_add(index) & MASK) as usize];
            if let Some(item) = NonNull::new(slot.load(Ordering::Relaxed)) {
                // SAFETY: the exchange above made these items ours.
                unsafe { batch.push(item) };
            }
        }
        Some(batch)
    }

    /// Thief: moves half of this ring (rounded up) into `into`, the thief's own, and returns one
    /// of the items and how many were taken.
    pub fn steal_into(&self, into: &Ring<T>) -> Option<(NonNull<T>, usize)> {
        let into_tail = into.tail.load(Ordering::Relaxed);
        let (into_steal, _) = unpack(into.head.load(Ordering::Acquire));
        if into_tail.wrapping_sub(into_steal) > HALF {
            // Another thread is stealing from the thief; half a ring might not fit.
            return None;
        }
        let (first, count) = self.claim()?;
        for index in 0..count {
            let item =
                self.slots[(first.wrapping_add(index) & MASK) as usize].load(Ordering::Relaxed);
            let index = into_tail.wrapping_add(index) & MASK;
            into.slots[index as usize].store(item, Ordering::Relaxed);
        }
        self.release();
        // The last one is returned, the others are published.
        let last = into_tail.wrapping_add(count - 1);
        let item = into.slots[(last & MASK) as usize].load(Ordering::Relaxed);
        // Release: pairs with the Acquire load of `tail` by the next thief.
        into.tail.store(last, Ordering::Release);
        NonNull::new(item).map(|item| (item, count as usize))
    }

    fn claim(&self) -> Option<(u32, u32)> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let (steal, real) = unpack(head);
            if steal != real {
                return None;
            }
            // Acquire: pairs with the Release store in `push`.
            let queued = self.tail.load(Ordering::Acquire).wrapping_sub(real);
            let count = queued - queued / 2;
            if count == 0 {
                return None;
            }
            if count > HALF {
                // `head` is older than `tail`: look again.
                head = self.head.load(Ordering::Acquire);
                continue;
            }
            let new = pack(steal, real.wrapping_add(count));
            match self
                .head
                .compare_exchange(head, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return Some((real, count)),
                Err(changed) => head = changed,
            }
        }
    }

    fn release(&self) {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let (_, real) = unpack(head);
            // AcqRel: pairs with the owner's Acquire load of `head` in `push`.
            match self.head.compare_exchange(
                head,
                pack(real, real),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return,
                Err(changed) => head = changed,
            }
        }
    }
}

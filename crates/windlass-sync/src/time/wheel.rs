//! One wheel of timers: hierarchical, 64 slots a level, ticks of 64 us.
//!
//! ```text
//! level   a slot covers   the level covers
//!   0        64 us             4.1 ms
//!   1       4.1 ms             262 ms
//!   2       262 ms            16.8 s
//!   3      16.8 s             17.9 min
//!   4      17.9 min           19.1 h
//!   5      19.1 h             50.9 days; what is further away waits in its last slot
//! ```
//! A tick says where a timer is kept, not when it is due: deadlines are exact to the nanosecond, a
//! slot knows the earliest of its own, and a timer fires when the clock has reached its deadline,
//! never before.
//!
//! # Rules for the entries (the `unsafe` blocks of this module cite them)
//! 1. **Link.** Everything in an entry's `inner` belongs to the wheel's lock while the entry is
//!    linked, and to the future that contains it otherwise.
//! 2. **Pin.** A linked entry does not move and is not freed: it is inside a pinned future, whose
//!    drop takes it out first.
//! 3. **Firing.** The thread that takes an entry out to fire it stores `state` as its last access.
//!    From then on the entry is its future's alone; the Release store pairs with the Acquire load
//!    in `Entry::state`.
#![cfg_attr(
    any(windlass_loom, windlass_shuttle),
    allow(dead_code, reason = "the models use a part of it")
)]

use std::marker::PhantomPinned;
use std::ptr;
use std::task::Waker;

use windlass_core::sync::UnsafeCell;
use windlass_core::sync::atomic::{AtomicU8, Ordering};

/// The grid on which timers are kept.
pub const TICK_NS: u64 = 64_000;

const BITS: usize = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 6;
const TOP_SLOT_TICKS: u64 = 1 << (BITS * (LEVELS - 1));
/// The furthest tick that has a slot of its own, seen from the present: one slot less than a turn,
/// so that it is never taken for the current one.
const HORIZON: u64 = TOP_SLOT_TICKS * (SLOTS as u64 - 1);

/// The state of a timer in a wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TimerState {
    /// The timer has not fired.
    Waiting = 0,
    /// The timer's time has come.
    Due = 1,
    /// The wheel has ended before.
    Closed = 2,
}

/// A timer's place in a wheel; part of a pinned future.
#[derive(Debug)]
pub(crate) struct Entry {
    state: AtomicU8,
    inner: UnsafeCell<Inner>,
    _pinned: PhantomPinned,
}

#[derive(Debug)]
struct Inner {
    /// A ring of its own: the head's `previous` is the tail.
    next: *const Entry,
    previous: *const Entry,
    deadline: u64,
    level: u8,
    slot: u8,
    linked: bool,
    waker: Option<Waker>,
}

// SAFETY: rule 1: `inner` is guarded by the wheel's lock or owned by the future; `state` is atomic.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

impl Entry {
    pub(crate) fn new() -> Entry {
        Entry {
            state: AtomicU8::new(TimerState::Waiting as u8),
            inner: UnsafeCell::new(Inner {
                next: ptr::null(),
                previous: ptr::null(),
                deadline: 0,
                level: 0,
                slot: 0,
                linked: false,
                waker: None,
            }),
            _pinned: PhantomPinned,
        }
    }

    /// Returns the state, without a lock.
    pub(crate) fn state(&self) -> TimerState {
        // Acquire: pairs with the Release store in `set_state`: the entry is ours again.
        match self.state.load(Ordering::Acquire) {
            0 => TimerState::Waiting,
            1 => TimerState::Due,
            _ => TimerState::Closed,
        }
    }

    /// Resets the state, so that the future can wait once more. Only while the entry is not linked.
    pub(crate) fn renew(&self) {
        self.state
            .store(TimerState::Waiting as u8, Ordering::Relaxed);
    }

    /// What dropping a fired entry does: it looks at the waker without the lock.
    #[cfg(windlass_loom)]
    pub(crate) fn look_as_owner(&self) {
        // SAFETY: rule 3: fired, so it is the owner's alone; loom checks that.
        let armed = unsafe { self.with(|inner| inner.waker.is_some()) };
        assert!(!armed, "the waker is taken out before the state is set");
    }

    /// Rule 3: the last access of the thread that took the entry out.
    fn set_state(&self, state: TimerState) {
        // Release: pairs with the Acquire load in `state`.
        self.state.store(state as u8, Ordering::Release);
    }

    /// # Safety
    /// Rule 1: the caller holds the wheel's lock, or the entry is its own and not linked.
    unsafe fn with<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        // SAFETY: exclusive, says the caller; the reference does not leave the closure.
        self.inner.with_mut(|inner| f(unsafe { &mut *inner }))
    }
}

/// The timers of one shard. All of it is behind the shard's lock.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// The present, in ticks: everything before it has fired.
    at: u64,
    len: usize,
    closed: bool,
    levels: Box<[Level; LEVELS]>,
}

// SAFETY: the pointers lead to entries that rule 2 keeps in place and rule 1 guards by this lock.
unsafe impl Send for Wheel {}

#[derive(Debug)]
struct Level {
    /// One bit per slot that is not empty.
    occupied: u64,
    slots: [Slot; SLOTS],
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    head: *const Entry,
    /// No entry of the slot needs a look before this. It may be too early, after a cancellation.
    earliest: u64,
}

const EMPTY: Slot = Slot {
    head: ptr::null(),
    earliest: u64::MAX,
};

/// Where the next thing happens.
#[derive(Debug, Clone, Copy)]
struct SlotPos {
    level: usize,
    slot: usize,
    start: u64,
}

impl Wheel {
    pub(crate) fn new() -> Wheel {
        Wheel {
            at: 0,
            len: 0,
            closed: false,
            levels: Box::new(std::array::from_fn(|_| Level {
                occupied: 0,
                slots: [EMPTY; SLOTS],
            })),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Links an entry that is due at `deadline`; gives the waker back if the wheel has ended.
    ///
    /// # Safety
    /// Rule 2: the entry is pinned, not linked, and taken out before it is freed.
    pub(crate) unsafe fn insert(
        &mut self,
        entry: &Entry,
        deadline: u64,
        now: u64,
        waker: Waker,
    ) -> Result<(), Waker> {
        if self.closed {
            return Err(waker);
        }
        if self.len == 0 {
            // Nothing between the last look and now can be missed.
            self.at = self.at.max(now / TICK_NS);
        }
        self.len += 1;
        // SAFETY: rule 1: not linked, so it is the caller's.
        unsafe {
            entry.with(|inner| {
                inner.deadline = deadline;
                inner.waker = Some(waker);
            });
            self.link(entry, deadline);
        }
        Ok(())
    }

    /// # Safety
    /// Rules 1 and 2: the entry is pinned, not linked, and counted in `len`.
    unsafe fn link(&mut self, entry: &Entry, deadline: u64) {
        let furthest = self.at.saturating_add(HORIZON);
        let tick = (deadline / TICK_NS).clamp(self.at, furthest);
        let level = level_of(self.at, tick);
        let index = slot_of(tick, level);
        let slot = &mut self.levels[level].slots[index];
        // What waits beyond the horizon needs a look when its slot comes round.
        let look_at = if tick == furthest {
            deadline.min(tick.saturating_mul(TICK_NS))
        } else {
            deadline
        };
        slot.earliest = slot.earliest.min(look_at);
        let this: *const Entry = entry;
        // SAFETY: rules 1 and 2: all of these are linked in this wheel, whose lock is held.
        unsafe {
            let (next, previous) = match slot.head.as_ref() {
                None => {
                    slot.head = this;
                    (this, this)
                }
                Some(head) => {
                    let tail = head.with(|inner| std::mem::replace(&mut inner.previous, this));
                    if ptr::eq(tail, head) {
                        head.with(|inner| inner.next = this);
                    } else {
                        (*tail).with(|inner| inner.next = this);
                    }
                    (slot.head, tail)
                }
            };
            entry.with(|inner| {
                inner.next = next;
                inner.previous = previous;
                inner.level = level as u8;
                inner.slot = index as u8;
                inner.linked = true;
            });
        }
        self.levels[level].occupied |= 1 << index;
    }

    /// Takes an entry out, if it is still in. Its waker is the caller's to drop, outside of the
    /// lock.
    ///
    /// # Safety
    /// Rule 2: the entry was linked in this wheel and is alive.
    pub(crate) unsafe fn remove(&mut self, entry: &Entry) -> Option<Waker> {
        if entry.state() != TimerState::Waiting {
            return None;
        }
        // SAFETY: rule 1: not fired, seen under the lock, so that it is still linked.
        unsafe {
            if !entry.with(|inner| inner.linked) {
                return None;
            }
            self.unlink(entry);
            self.len -= 1;
            entry.with(|inner| inner.waker.take())
        }
    }

    /// Exchanges the waker of an entry that is still in. Gives back what is to be dropped outside.
    ///
    /// # Safety
    /// As for `remove`.
    pub(crate) unsafe fn set_waker(&mut self, entry: &Entry, waker: Waker) -> Option<Waker> {
        if entry.state() != TimerState::Waiting {
            return Some(waker);
        }
        // SAFETY: rule 1: linked, and the lock is held.
        unsafe { entry.with(|inner| inner.waker.replace(waker)) }
    }

    /// # Safety
    /// Rule 1: the entry is linked in this wheel.
    unsafe fn unlink(&mut self, entry: &Entry) {
        // SAFETY: rules 1 and 2: it and its neighbours are linked here.
        unsafe {
            let (next, previous, level, index) = entry.with(|inner| {
                inner.linked = false;
                (
                    inner.next,
                    inner.previous,
                    inner.level as usize,
                    inner.slot as usize,
                )
            });
            let slot = &mut self.levels[level].slots[index];
            if ptr::eq(next, entry) {
                *slot = EMPTY;
                self.levels[level].occupied &= !(1 << index);
                return;
            }
            (*next).with(|inner| inner.previous = previous);
            (*previous).with(|inner| inner.next = next);
            if ptr::eq(slot.head, entry) {
                slot.head = next;
            }
        }
    }

    /// When the wheel has to be looked at next; the end of time if it is empty.
    pub(crate) fn next(&self) -> u64 {
        self.first().map_or(u64::MAX, |pos| {
            self.levels[pos.level].slots[pos.slot].earliest
        })
    }

    /// The slot that comes first. The lowest level that is not empty has it: a level holds only
    /// what is in the same slot of the level above as the present.
    fn first(&self) -> Option<SlotPos> {
        self.levels.iter().enumerate().find_map(|(level, there)| {
            if there.occupied == 0 {
                return None;
            }
            let here = self.at >> (BITS * level);
            let turned = there.occupied.rotate_right((here % SLOTS as u64) as u32);
            let ahead = u64::from(turned.trailing_zeros());
            Some(SlotPos {
                level,
                slot: ((here + ahead) % SLOTS as u64) as usize,
                start: (here + ahead) << (BITS * level),
            })
        })
    }

    /// Takes out what is due at `now`: wakers go to `due`, `most` at most. True: there is more.
    pub(crate) fn expire(&mut self, now: u64, due: &mut Vec<Waker>, most: usize) -> bool {
        let present = now / TICK_NS;
        while let Some(pos) = self.first() {
            if pos.start > present {
                break;
            }
            self.at = self.at.max(pos.start);
            if !self.expire_slot(pos, now, due, most) {
                return true;
            }
            if pos.level == 0 && pos.start == present {
                // What is left in it is due later within this very tick.
                break;
            }
        }
        self.at = self.at.max(present);
        false
    }

    /// Empties a slot: what is due fires, the rest moves to a lower level, or stays in the current
    /// tick. False: there are `most`.
    fn expire_slot(&mut self, pos: SlotPos, now: u64, due: &mut Vec<Waker>, most: usize) -> bool {
        let stays = pos.level == 0;
        let mut earliest = u64::MAX;
        let mut next = self.levels[pos.level].slots[pos.slot].head;
        let tail = match self.tail(pos) {
            Some(tail) => tail,
            None => return true,
        };
        loop {
            // SAFETY: rules 1 and 2: linked in this wheel.
            let entry = unsafe { &*next };
            // SAFETY: as above.
            let (deadline, after) = unsafe { entry.with(|inner| (inner.deadline, inner.next)) };
            let last = ptr::eq(next, tail);
            if deadline <= now {
                if due.len() == most {
                    return false;
                }
                due.extend(self.fire(entry, TimerState::Due));
            } else if stays {
                earliest = earliest.min(deadline);
            } else {
                // SAFETY: rules 1 and 2: linked before, and linked again.
                unsafe {
                    self.unlink(entry);
                    self.link(entry, deadline);
                }
            }
            if last {
                break;
            }
            next = after;
        }
        if earliest < u64::MAX {
            self.levels[pos.level].slots[pos.slot].earliest = earliest;
        }
        true
    }

    fn tail(&self, pos: SlotPos) -> Option<*const Entry> {
        let head = self.levels[pos.level].slots[pos.slot].head;
        // SAFETY: rules 1 and 2: linked in this wheel.
        unsafe { head.as_ref().map(|head| head.with(|inner| inner.previous)) }
    }

    /// Takes an entry out and sets its state; its waker is to be woken outside of the lock.
    fn fire(&mut self, entry: &Entry, state: TimerState) -> Option<Waker> {
        // SAFETY: rule 1: linked in this wheel.
        let waker = unsafe {
            self.unlink(entry);
            entry.with(|inner| inner.waker.take())
        };
        self.len -= 1;
        entry.set_state(state);
        waker
    }

    /// Ends the wheel: every entry is closed, and no other is taken.
    pub(crate) fn close(&mut self) -> Vec<Waker> {
        self.closed = true;
        let mut wakers = Vec::with_capacity(self.len);
        while let Some(pos) = self.first() {
            let head = self.levels[pos.level].slots[pos.slot].head;
            // SAFETY: rules 1 and 2: an occupied slot has a head, which is linked.
            wakers.extend(self.fire(unsafe { &*head }, TimerState::Closed));
        }
        wakers
    }
}

/// The lowest level on which the two are in different slots of the same turn.
fn level_of(at: u64, tick: u64) -> usize {
    let differing = (at ^ tick) | (SLOTS as u64 - 1);
    let highest = 63 - differing.leading_zeros() as usize;
    (highest / BITS).min(LEVELS - 1)
}

fn slot_of(tick: u64, level: usize) -> usize {
    (tick >> (BITS * level)) as usize % SLOTS
}

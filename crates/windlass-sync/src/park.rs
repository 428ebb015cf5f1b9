//! The park protocol: how a guest waits, and how what it waits for reaches it.
//!
//! # Who does what The *runner* of a guest (the code that steps it, or decides about it) begins and
//! withdraws waits, parks, and takes what has arrived. *Enders* can be any code: another guest's
//! hand-over, a timer, a blocking thread, the mailbox.
//!
//! # States
//! ```text
//!          begin, end                        begin by the runner only
//!        ┌────────────┐
//!        │   Awake    │── park, nothing has arrived ──►  Parked
//!        └────────────┘◄── end: this ender wakes it ───
//!              │  close, from either                       │
//!              └───────────────►  Closed  ◄────────────────┘
//! ```
//! Everything happens under one lock, and each wait has a number of its own, its *generation*,
//! which is never used again. From that follows what matters:
//! - A wait ends exactly once: `end` takes it out of the list, and an end that comes later (or
//!   after a withdrawal) finds nothing there, gets its value back, and has to find it another
//!   taker.
//! - No wake-up is lost: an end before `park` is seen by `park`, which then does not park; an end
//!   after it finds Parked.
//! - One wake-up per sleep: only the end that finds Parked wakes, and leaves Awake.
//!
//! Lock order: the lock of an object (channel, mutex, semaphore, task) is taken before this one,
//! never after.

use std::fmt;

use windlass_core::sync::Mutex;

/// The number of one wait of one guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// The waits of one guest: `E` is how they end, `U` what is to be undone when they do.
pub struct Park<E, U> {
    inner: Mutex<Inner<E, U>>,
}

struct Inner<E, U> {
    state: State,
    last: u64,
    waits: Vec<Wait<U>>,
    /// The oldest first.
    arrived: Vec<(u64, E)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Awake,
    Parked,
    Closed,
}

/// A wait that has begun and not ended.
#[derive(Debug)]
pub struct Wait<U> {
    /// The guest's own number for it.
    pub tag: u64,
    /// The number of the wait.
    pub generation: Generation,
    /// What is to be undone when the wait ends.
    pub undo: U,
}

/// A wait that has just ended.
#[must_use = "a parked guest has to be woken"]
#[derive(Debug)]
pub struct EndedWait<U> {
    /// What is to be undone.
    pub undo: U,
    /// The guest was parked, and now is not: wake it.
    pub wakes: bool,
}

impl<E, U> Default for Park<E, U> {
    fn default() -> Park<E, U> {
        Park::new()
    }
}

impl<E, U> fmt::Debug for Park<E, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.lock().state;
        f.debug_struct("Park")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

impl<E, U> Park<E, U> {
    /// Makes the waits of a guest that is awake and waits for nothing.
    pub fn new() -> Park<E, U> {
        Park {
            inner: Mutex::new(Inner {
                state: State::Awake,
                last: 0,
                waits: Vec::new(),
                arrived: Vec::new(),
            }),
        }
    }

    /// Begins a wait; None if the guest is no more.
    pub fn begin(&self, tag: u64, undo: U) -> Option<Generation> {
        let mut inner = self.inner.lock();
        if inner.state == State::Closed {
            return None;
        }
        inner.last += 1;
        let generation = Generation(inner.last);
        inner.waits.push(Wait {
            tag,
            generation,
            undo,
        });
        Some(generation)
    }

    /// Changes what is to be undone, if the wait is still there.
    pub fn change(&self, generation: Generation, change: impl FnOnce(&mut U)) -> bool {
        let mut inner = self.inner.lock();
        match inner.waits.iter_mut().find(|w| w.generation == generation) {
            Some(wait) => {
                change(&mut wait.undo);
                true
            }
            None => false,
        }
    }

    /// Ends a wait; its ending comes back if there is no such wait any more.
    pub fn end(&self, generation: Generation, ending: E) -> Result<EndedWait<U>, E> {
        let mut inner = self.inner.lock();
        let index = inner.waits.iter().position(|w| w.generation == generation);
        let Some(index) = index else {
            return Err(ending);
        };
        let wait = inner.waits.remove(index);
        inner.arrived.push((wait.tag, ending));
        let wakes = inner.state == State::Parked;
        if wakes {
            inner.state = State::Awake;
        }
        Ok(EndedWait {
            undo: wait.undo,
            wakes,
        })
    }

    /// Takes the oldest wait with this tag out: it ends no more.
    pub fn withdraw(&self, tag: u64) -> Option<Wait<U>> {
        let mut inner = self.inner.lock();
        let index = inner.waits.iter().position(|w| w.tag == tag)?;
        Some(inner.waits.remove(index))
    }

    /// Ends all waits in the same way; gives them, and whether the guest has to be woken.
    pub fn end_all(&self, mut ending: impl FnMut() -> E) -> (Vec<Wait<U>>, bool) {
        let mut inner = self.inner.lock();
        let waits = std::mem::take(&mut inner.waits);
        for wait in &waits {
            let ending = ending();
            inner.arrived.push((wait.tag, ending));
        }
        let wakes = inner.state == State::Parked && !waits.is_empty();
        if wakes {
            inner.state = State::Awake;
        }
        (waits, wakes)
    }

    /// The runner is about to wait: true if it may, false if something has arrived.
    pub fn park(&self) -> bool {
        let mut inner = self.inner.lock();
        if inner.state == State::Closed || !inner.arrived.is_empty() {
            return false;
        }
        inner.state = State::Parked;
        true
    }

    /// What has arrived.
    pub fn take(&self) -> EndedWaits<E> {
        let mut inner = self.inner.lock();
        match inner.arrived.len() {
            0 => EndedWaits::Nothing,
            // The room stays for the next.
            1 => (inner.arrived.pop())
                .map_or(EndedWaits::Nothing, |(tag, end)| EndedWaits::One(tag, end)),
            _ => EndedWaits::Several(std::mem::take(&mut inner.arrived)),
        }
    }

    /// Whether something has arrived.
    pub fn has_arrived(&self) -> bool {
        !self.inner.lock().arrived.is_empty()
    }

    /// Calls `look` with every wait.
    pub fn each(&self, mut look: impl FnMut(&Wait<U>)) {
        self.inner.lock().waits.iter().for_each(&mut look);
    }

    /// The guest is no more: nothing begins or ends from now on. Gives what has not ended, and what
    /// it was doing.
    pub fn close(&self) -> (Vec<Wait<U>>, ParkState) {
        let mut inner = self.inner.lock();
        let was = match inner.state {
            State::Awake => ParkState::Awake,
            State::Parked => ParkState::Parked,
            State::Closed => ParkState::Closed,
        };
        inner.state = State::Closed;
        let arrived = std::mem::take(&mut inner.arrived);
        let waits = std::mem::take(&mut inner.waits);
        drop(inner);
        // Values of users, whose destructors may do anything.
        drop(arrived);
        (waits, was)
    }
}

/// What has arrived for a guest, by the tags of its waits.
#[derive(Debug, PartialEq)]
pub enum EndedWaits<E> {
    /// No wait has ended since the last look.
    Nothing,
    /// One wait has ended.
    One(u64, E),
    /// The oldest first.
    Several(Vec<(u64, E)>),
}

/// What a guest was doing when it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParkState {
    /// The guest was running, or ready to.
    Awake,
    /// The guest was parked.
    Parked,
    /// The guest had been closed before.
    Closed,
}

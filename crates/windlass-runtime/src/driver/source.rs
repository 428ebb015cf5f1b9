//! One resource's readiness, and who waits for it.
//!
//! `state` holds the readiness bits and a count of the events seen: whoever finds that the resource
//! was not ready after all clears the bits only if no event has come since. The lock on the waiters
//! orders the rest: an event sets the bits and then takes the waiters, a waiter looks at the bits
//! under the lock before it is added.

use std::task::{Context, Poll, Waker, ready};

use mio::event::Event;
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicU32, Ordering};
use windlass_core::task::{contain, spend};

const READABLE: u32 = 1;
const WRITABLE: u32 = 2;
const READ_CLOSED: u32 = 4;
const WRITE_CLOSED: u32 = 8;
/// Nobody will tell of events any more.
const SHUT: u32 = 16;
/// The count of events is in the bits from here on.
const ONE_EVENT: u32 = 32;

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read = 0,
    Write = 1,
}

impl Direction {
    fn mask(self) -> u32 {
        match self {
            Direction::Read => READABLE | READ_CLOSED | SHUT,
            Direction::Write => WRITABLE | WRITE_CLOSED | SHUT,
        }
    }

    /// What an attempt that would have blocked proves wrong. A closed side stays closed.
    fn clears(self) -> u32 {
        match self {
            Direction::Read => READABLE,
            Direction::Write => WRITABLE,
        }
    }
}

/// The state in which a resource was found ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready(u32);

impl Ready {
    /// True if the driver has ended: waiting would be for ever.
    pub(crate) fn is_shut(self) -> bool {
        self.0 & SHUT != 0
    }
}

#[derive(Debug, Default)]
pub(crate) struct Source {
    state: AtomicU32,
    waiters: [Mutex<Vec<Waker>>; 2],
}

impl Source {
    /// An event has come.
    pub(super) fn happened(&self, event: &Event) {
        let mut bits = 0;
        if event.is_readable() || event.is_error() {
            bits |= READABLE;
        }
        if event.is_writable() || event.is_error() {
            bits |= WRITABLE;
        }
        if event.is_read_closed() {
            bits |= READ_CLOSED;
        }
        if event.is_write_closed() {
            bits |= WRITE_CLOSED;
        }
        self.set(bits);
    }

    /// The driver has ended: everybody who waits is told, now and later.
    pub(super) fn shut(&self) {
        self.set(SHUT);
    }

    /// Adds readiness and wakes who waited for it.
    fn set(&self, bits: u32) {
        let mut now = self.state.load(Ordering::Relaxed);
        // Release: what the waiters' locks do not order, the Acquire load in `poll_ready` does.
        while let Err(changed) = self.state.compare_exchange_weak(
            now,
            (now | bits).wrapping_add(ONE_EVENT),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            now = changed;
        }
        for direction in [Direction::Read, Direction::Write] {
            if bits & direction.mask() != 0 {
                let woken = std::mem::take(&mut *self.waiters[direction as usize].lock());
                woken.into_iter().for_each(|waker| {
                    contain(|| waker.wake());
                });
            }
        }
    }

    /// Waits until the resource may be ready; an attempt that then would block calls
    /// [`clear`](Source::clear) and waits again.
    pub(crate) fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<Ready> {
        let spent = ready!(spend(cx));
        let look = || {
            let state = self.state.load(Ordering::Acquire);
            (state & direction.mask() != 0).then_some(Ready(state))
        };
        if let Some(found) = look() {
            spent.made_progress();
            return Poll::Ready(found);
        }
        let mut waiters = self.waiters[direction as usize].lock();
        if let Some(found) = look() {
            drop(waiters);
            spent.made_progress();
            return Poll::Ready(found);
        }
        if !waiters.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiters.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The resource was not ready after all.
    pub(crate) fn clear(&self, direction: Direction, found: Ready) {
        // If this fails an event has come meanwhile, and the next attempt looks at that. Relaxed: it
        // takes readiness away, and publishes nothing.
        let _ = self.state.compare_exchange(
            found.0,
            found.0 & !direction.clears(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}

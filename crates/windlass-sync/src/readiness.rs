//! The readiness of one resource in a word, and who waits for it.
//!
//! `state` holds the readiness bits and a count of the events seen: a thread that finds that the
//! resource was not ready after all clears the bits only if no event has come since. The lock on
//! the waiters orders the rest: an event sets the bits and then takes the waiters, a waiter looks
//! at the bits under the lock before it is added.
//!
//! Who waits: per direction one *poller*, the last task that came through a poll function, and any
//! number of futures, each with its node in a wait list. A future that is dropped takes its node
//! along and a poller is replaced, so neither waits nor events allocate, and nothing grows. An
//! event wakes all of them, and takes no readiness away: one that is dropped instead of polled
//! deprives no other.
//!
//! The driver's `Source` turns the kernel's events into calls of `set`, and tries operations. This
//! file knows no kernel, so that the model checkers can build it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicU32, Ordering};
use windlass_core::task::{contain, spend};

use crate::wait_list::{Node, Notification, Status, WaitList, in_rounds};

/// The bit of a resource that can be read.
pub const READABLE: u32 = 1;
/// The bit of a resource that can be written.
pub const WRITABLE: u32 = 2;
/// The bit of a resource whose reading half is closed.
pub const READ_CLOSED: u32 = 4;
/// The bit of a resource whose writing half is closed.
pub const WRITE_CLOSED: u32 = 8;
/// The driver has ended: no event comes any more.
const SHUT: u32 = 16;
/// The bit of a resource that has priority data (on a TCP socket: urgent data).
pub const PRIORITY: u32 = 32;
/// The bit of a resource that has an error to be asked for.
pub const ERROR: u32 = 64;
/// The count of events is in the bits from here on.
const ONE_EVENT: u32 = 128;
/// What an attempt can prove wrong; closed sides stay closed.
const CLEARABLE: u32 = READABLE | WRITABLE | PRIORITY | ERROR;

/// What an operation wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To read, or to accept.
    Read = 0,
    /// To write, or to connect.
    Write = 1,
}

impl Direction {
    fn mask(self) -> u32 {
        match self {
            Direction::Read => READABLE | READ_CLOSED | SHUT,
            Direction::Write => WRITABLE | WRITE_CLOSED | SHUT,
        }
    }

    /// Events that waiters of this direction look at: those who wait for priority data or an error
    /// wait with the readers.
    fn wakes(self) -> u32 {
        match self {
            Direction::Read => self.mask() | PRIORITY | ERROR,
            Direction::Write => self.mask(),
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
pub struct Ready(u32);

impl Ready {
    /// True if the driver has ended: waiting would be for ever.
    pub fn is_shut(self) -> bool {
        self.0 & SHUT != 0
    }

    /// The bits of the state: `READABLE`, `WRITABLE` and the others.
    pub fn bits(self) -> u32 {
        self.0 & (CLEARABLE | READ_CLOSED | WRITE_CLOSED)
    }
}

/// The readiness of one resource in both directions.
#[derive(Default)]
pub struct Readiness {
    state: AtomicU32,
    waiters: [Mutex<Waiters>; 2],
}

/// Who waits for one direction.
struct Waiters {
    poller: Option<Waker>,
    futures: WaitList<()>,
}

impl Default for Waiters {
    fn default() -> Waiters {
        Waiters {
            poller: None,
            futures: WaitList::new(),
        }
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.debug("Readiness", f)
    }
}

impl Readiness {
    /// The driver has ended: every waiter is notified, now and later.
    pub fn shut(&self) {
        self.set(SHUT);
    }

    /// Marks one direction as ready: the event of a resource that is not the kernel's.
    pub fn set_ready(&self, direction: Direction) {
        self.set(direction.clears());
    }

    /// Adds readiness and wakes who waited for it.
    pub fn set(&self, bits: u32) {
        let mut now = self.state.load(Ordering::Relaxed);
        // Release: what the waiters' locks do not order, the Acquire load in `state` does.
        while let Err(changed) = self.state.compare_exchange_weak(
            now,
            (now | bits).wrapping_add(ONE_EVENT),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            now = changed;
        }
        for direction in [Direction::Read, Direction::Write] {
            if bits & direction.wakes() != 0 {
                // A waker that panics keeps neither the others nor the driver from going on.
                contain(|| {
                    in_rounds(&self.waiters[direction as usize], |waiters, wakes| {
                        wakes.extend(waiters.poller.take());
                        waiters
                            .futures
                            .notify_while(Notification::Released, wakes, |()| true);
                    });
                });
            }
        }
    }

    /// The state, if it has one of these bits.
    fn look(&self, bits: u32) -> Option<Ready> {
        let found = self.state();
        (found.0 & bits != 0).then_some(found)
    }

    /// Waits until the resource may be ready. For poll functions: the last task that asked is
    /// woken.
    pub fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<Ready> {
        let spent = ready!(spend(cx));
        if let Some(found) = self.look(direction.mask()) {
            spent.made_progress();
            return Poll::Ready(found);
        }
        let mut waiters = self.waiters[direction as usize].lock();
        if let Some(found) = self.look(direction.mask()) {
            drop(waiters);
            spent.made_progress();
            return Poll::Ready(found);
        }
        let replaced = match &waiters.poller {
            Some(known) if known.will_wake(cx.waker()) => None,
            _ => waiters.poller.replace(cx.waker().clone()),
        };
        drop(waiters);
        drop(replaced);
        Poll::Pending
    }

    /// Waits until the resource may be ready, beside any number of others. Cancel-safe.
    pub fn ready(&self, direction: Direction) -> ReadyWait<'_> {
        self.ready_for(direction, direction.mask())
    }

    /// Waits until the resource has one of these bits, or the driver has ended. Waits for priority
    /// data and errors are of the reading direction. Cancel-safe.
    pub fn ready_for(&self, direction: Direction, bits: u32) -> ReadyWait<'_> {
        ReadyWait {
            readiness: self,
            direction,
            bits: bits | SHUT,
            node: Node::new(()),
        }
    }

    /// The state as it is, ready or not.
    pub fn state(&self) -> Ready {
        // Acquire: pairs with the Release in `set`.
        Ready(self.state.load(Ordering::Acquire))
    }

    /// The resource was not ready after all, or is no longer.
    pub fn clear(&self, direction: Direction, found: Ready) {
        // If this fails an event has come meanwhile, and the next attempt looks at that. Relaxed:
        // it takes readiness away, and publishes nothing.
        let _ = self.state.compare_exchange(
            found.0,
            found.0 & !direction.clears(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// The resource does not have these bits after all, unless an event has come since it was found
    /// so. Other threads may clear other bits meanwhile.
    pub fn clear_bits(&self, bits: u32, found: Ready) {
        let mut now = self.state.load(Ordering::Relaxed);
        while now / ONE_EVENT == found.0 / ONE_EVENT {
            // Relaxed: it takes readiness away, and publishes nothing.
            match self.state.compare_exchange_weak(
                now,
                now & !(bits & CLEARABLE),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(changed) => now = changed,
            }
        }
    }

    /// Formats the readiness under the name of the type that holds it.
    pub fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        f.debug_struct(name)
            .field("readable", &(state & Direction::Read.mask() != 0))
            .field("writable", &(state & Direction::Write.mask() != 0))
            .field("events", &(state / ONE_EVENT))
            .finish_non_exhaustive()
    }
}

/// The future of [`Readiness::ready`].
#[must_use = "futures do nothing unless awaited"]
pub struct ReadyWait<'a> {
    readiness: &'a Readiness,
    direction: Direction,
    bits: u32,
    node: Node<()>,
}

impl fmt::Debug for ReadyWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyWait")
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}

impl Future for ReadyWait<'_> {
    type Output = Ready;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ready> {
        let spent = ready!(spend(cx));
        let this = self.into_ref().get_ref();
        if let Some(found) = this.readiness.look(this.bits) {
            spent.made_progress();
            return Poll::Ready(found);
        }
        let mut waiters = this.readiness.waiters[this.direction as usize].lock();
        if let Some(found) = this.readiness.look(this.bits) {
            drop(waiters);
            spent.made_progress();
            return Poll::Ready(found);
        }
        let replaced = if this.node.status() == Status::Waiting {
            // SAFETY: the node was pushed into this list, and is still waiting under the lock.
            unsafe { waiters.futures.renew(&this.node, cx.waker()) }
        } else {
            // The node was notified, and another task has used up the readiness since.
            this.node.reset();
            // SAFETY: the node is idle and pinned in this future, whose drop takes it out.
            unsafe { waiters.futures.push(&this.node, Some(cx.waker().clone())) };
            None
        };
        drop(waiters);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for ReadyWait<'_> {
    fn drop(&mut self) {
        let lock = &self.readiness.waiters[self.direction as usize];
        // SAFETY: the node is ours, and was pushed into no other list.
        unsafe { self.node.withdraw(lock, |waiters| &mut waiters.futures) };
    }
}

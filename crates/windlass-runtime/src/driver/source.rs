//! One resource's readiness, and who waits for it.
//!
//! `state` holds the readiness bits and a count of the events seen: whoever finds that the resource
//! was not ready after all clears the bits only if no event has come since. The lock on the waiters
//! orders the rest: an event sets the bits and then takes the waiters, a waiter looks at the bits
//! under the lock before it is added.
//!
//! Who waits: per direction one *poller*, the last task that came through a poll function, and any
//! number of futures, each with its node in a wait list. A future that is dropped takes its node
//! along and a poller is replaced, so neither waits nor events allocate, and nothing grows. An event
//! wakes all of them, and takes no readiness away: one that is dropped instead of polled deprives
//! nobody.
//!
//! # Why a short transfer may clear readiness
//! The kernel tells of edges. A read that got less than it asked for has seen the queue empty at
//! some moment *m* within its system call; so has one that would have blocked, and both are treated
//! alike:
//!
//! 1. `found`, with its count of events, was loaded before the call, and so before *m*.
//! 2. What comes after *m* is a new edge, which the driver turns into a call of `set`, be it at once
//!    or later. (What came before *m* was read.)
//! 3. If that `set` comes before `clear`, the count differs, the exchange fails and the bits stay. If
//!    it comes after, it sets the bits again and takes whoever waits. The count would have to wrap
//!    within one system call to be taken for the old one: 2^27 events.
//! 4. An end or a reset that was seen already is in the bits that `clear` leaves alone: such a
//!    resource stays ready for good. One that was not seen yet is an edge of its own, as in 2.
//!
//! For writes: a short one has found the send buffer full, and the kernel has noted then that
//! somebody wants to hear of room. This does not hold for every socket; those that differ ask for
//! it with `asked` of 0 (see `net::stream`).

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use mio::event::Event;
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicU32, Ordering};
use windlass_core::task::{contain, spend};

use super::shut_down;
use crate::sync::wait_list::{Node, Status, Told, WaitList, in_rounds};

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

#[derive(Default)]
pub(crate) struct Source {
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

    /// One direction may go on: the event of a resource that is not the kernel's.
    pub(crate) fn set_ready(&self, direction: Direction) {
        self.set(direction.clears());
    }

    /// Adds readiness and wakes who waited for it.
    fn set(&self, bits: u32) {
        let mut now = self.state.load(Ordering::Relaxed);
        // Release: what the waiters' locks do not order, the Acquire load in `look` does.
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
                // A waker that panics keeps neither the others nor the driver from going on.
                contain(|| {
                    in_rounds(&self.waiters[direction as usize], |waiters, wakes| {
                        wakes.extend(waiters.poller.take());
                        waiters.futures.tell_while(Told::Released, wakes, |()| true);
                    });
                });
            }
        }
    }

    /// The state, if it says that the direction may be ready.
    fn look(&self, direction: Direction) -> Option<Ready> {
        // Acquire: pairs with the Release in `set`.
        let state = self.state.load(Ordering::Acquire);
        (state & direction.mask() != 0).then_some(Ready(state))
    }

    /// Waits until the resource may be ready. For poll functions: the last task that asked is woken.
    pub(crate) fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<Ready> {
        let spent = ready!(spend(cx));
        if let Some(found) = self.look(direction) {
            spent.made_progress();
            return Poll::Ready(found);
        }
        let mut waiters = self.waiters[direction as usize].lock();
        if let Some(found) = self.look(direction) {
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
    pub(crate) fn ready(&self, direction: Direction) -> Readiness<'_> {
        Readiness {
            source: self,
            direction,
            node: Node::new(()),
        }
    }

    /// Tries `attempt` whenever the resource may be ready, until it does not block. For poll
    /// functions, as [`poll_ready`](Source::poll_ready).
    pub(crate) fn poll_io<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            let found = ready!(self.poll_ready(direction, cx));
            if let Some(result) = self.attempt(direction, found, &mut attempt, |_| false) {
                return Poll::Ready(result);
            }
        }
    }

    /// As `poll_io`, for bytes: moving some but fewer than `asked` shows that there is no more.
    pub(crate) fn poll_transfer(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        asked: usize,
        mut attempt: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let found = ready!(self.poll_ready(direction, cx));
            let is_short = |moved: &usize| (1..asked).contains(moved);
            if let Some(result) = self.attempt(direction, found, &mut attempt, is_short) {
                return Poll::Ready(result);
            }
        }
    }

    /// Tries `attempt` whenever the resource may be ready, until it does not block; any number of
    /// tasks may do so. Cancel-safe: the poll in which an attempt succeeds is the last.
    pub(crate) async fn io<R>(
        &self,
        direction: Direction,
        mut attempt: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        loop {
            let found = self.ready(direction).await;
            if let Some(result) = self.attempt(direction, found, &mut attempt, |_| false) {
                return result;
            }
        }
    }

    /// Tries `attempt` once, whatever is known about readiness.
    pub(crate) fn try_io<R>(
        &self,
        direction: Direction,
        mut attempt: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let found = Ready(self.state.load(Ordering::Acquire));
        let result = self.attempt(direction, found, &mut attempt, |_| false);
        result.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    /// One attempt; none: it would have blocked, or was interrupted.
    ///
    /// Any other error leaves the readiness as it is. A listener that is out of descriptors still
    /// has the connection, and the kernel tells of it only once.
    fn attempt<R>(
        &self,
        direction: Direction,
        found: Ready,
        attempt: &mut impl FnMut() -> io::Result<R>,
        is_short: impl Fn(&R) -> bool,
    ) -> Option<io::Result<R>> {
        if found.is_shut() {
            return Some(Err(shut_down()));
        }
        let result = loop {
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.clear(direction, found);
                None
            }
            Ok(value) if is_short(&value) => {
                self.clear(direction, found);
                Some(Ok(value))
            }
            result => Some(result),
        }
    }

    /// The resource was not ready after all, or is no longer.
    fn clear(&self, direction: Direction, found: Ready) {
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

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        f.debug_struct("Source")
            .field("readable", &(state & Direction::Read.mask() != 0))
            .field("writable", &(state & Direction::Write.mask() != 0))
            .field("events", &(state / ONE_EVENT))
            .finish_non_exhaustive()
    }
}

/// The future of [`Source::ready`].
pub(crate) struct Readiness<'a> {
    source: &'a Source,
    direction: Direction,
    node: Node<()>,
}

impl Future for Readiness<'_> {
    type Output = Ready;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ready> {
        let spent = ready!(spend(cx));
        let this = self.into_ref().get_ref();
        if let Some(found) = this.source.look(this.direction) {
            spent.made_progress();
            return Poll::Ready(found);
        }
        let mut waiters = this.source.waiters[this.direction as usize].lock();
        if let Some(found) = this.source.look(this.direction) {
            drop(waiters);
            spent.made_progress();
            return Poll::Ready(found);
        }
        let replaced = if this.node.status() == Status::Waiting {
            // SAFETY: the node was pushed into this list, and is still waiting under the lock.
            unsafe { waiters.futures.renew(&this.node, cx.waker()) }
        } else {
            // It was told, and somebody else has used up the readiness since.
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

impl Drop for Readiness<'_> {
    fn drop(&mut self) {
        let lock = &self.source.waiters[self.direction as usize];
        // SAFETY: the node is ours, and was pushed into no other list.
        unsafe { self.node.withdraw(lock, |waiters| &mut waiters.futures) };
    }
}

//! One resource of the driver: its readiness, and operations that are tried when it is ready.
//!
//! The word of the readiness and those who wait for it are in `windlass_sync::readiness`.
//!
//! # Why a short transfer may clear readiness
//! The kernel tells of edges. A read that got less than it asked for has seen the queue empty at
//! some moment *m* within its system call; so has one that would have blocked, and both are treated
//! alike:
//!
//! 1. `found`, with its count of events, was loaded before the call, and so before *m*.
//! 2. What comes after *m* is a new edge, which the driver turns into a call of `set`, be it at
//!    once or later. (What came before *m* was read.)
//! 3. If that `set` comes before `clear`, the count differs, the exchange fails and the bits stay.
//!    If it comes after, it sets the bits again and takes the waiter. The count would have to
//!    wrap within one system call to be taken for the old one: 2^25 events.
//! 4. An end or a reset that was seen already is in the bits that `clear` leaves alone: such a
//!    resource stays ready for good. One that was not seen yet is an edge of its own, as in 2.
//!
//! For writes: a short one has found the send buffer full, and the kernel has noted then that
//! a writer waits for room. This does not hold for every socket; those that differ ask for
//! it with `asked` of 0 (see `net::stream`).

use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

use mio::event::Event;

use super::shut_down;
pub use windlass_sync::readiness::{Direction, Ready};
use windlass_sync::readiness::{
    ERROR, PRIORITY, READ_CLOSED, READABLE, Readiness, ReadyWait, WRITABLE, WRITE_CLOSED,
};

/// One resource that the driver watches, or that a simulation stands for.
#[derive(Default)]
pub struct Source {
    readiness: Readiness,
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
        if event.is_error() {
            bits |= ERROR;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if event.is_priority() {
            bits |= PRIORITY;
        }
        if event.is_read_closed() {
            bits |= READ_CLOSED;
        }
        if event.is_write_closed() {
            bits |= WRITE_CLOSED;
        }
        self.readiness.set(bits);
    }

    /// The driver has ended: every waiter is notified, now and later.
    pub(super) fn shut(&self) {
        self.readiness.shut();
    }

    /// Marks one direction as ready: the event of a resource that is not the kernel's.
    #[inline]
    pub fn set_ready(&self, direction: Direction) {
        self.readiness.set_ready(direction);
    }

    /// Waits until the resource may be ready, beside any number of others. Cancel-safe.
    #[inline]
    pub fn ready(&self, direction: Direction) -> ReadyWait<'_> {
        self.readiness.ready(direction)
    }

    /// Waits until the resource has one of these bits of `windlass_sync::readiness`. Cancel-safe.
    pub fn ready_for(&self, direction: Direction, bits: u32) -> ReadyWait<'_> {
        self.readiness.ready_for(direction, bits)
    }

    /// Waits until the resource may be ready. For poll functions: the last task that asked is
    /// woken.
    pub fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<Ready> {
        self.readiness.poll_ready(direction, cx)
    }

    /// Returns what is known about the resource now.
    pub fn state(&self) -> Ready {
        self.readiness.state()
    }

    /// Takes bits away from what is known, unless an event has come since `found`.
    pub fn clear_bits(&self, bits: u32, found: Ready) {
        self.readiness.clear_bits(bits, found);
    }

    /// Tries `attempt` whenever the resource may be ready, until it does not block. For poll
    /// functions, as [`poll_ready`](Readiness::poll_ready).
    pub fn poll_io<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            let found = ready!(self.readiness.poll_ready(direction, cx));
            if let Some(result) = self.attempt(direction, found, &mut attempt, |_| false) {
                return Poll::Ready(result);
            }
        }
    }

    /// Does what `poll_io` does, for bytes: moving some but fewer than `asked` shows that there is
    /// no more.
    pub fn poll_transfer(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        asked: usize,
        mut attempt: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let found = ready!(self.readiness.poll_ready(direction, cx));
            let is_short = |moved: &usize| (1..asked).contains(moved);
            if let Some(result) = self.attempt(direction, found, &mut attempt, is_short) {
                return Poll::Ready(result);
            }
        }
    }

    /// Tries `attempt` whenever the resource may be ready, until it does not block; any number of
    /// tasks may do so. Cancel-safe: the poll in which an attempt succeeds is the last.
    pub async fn io<R>(
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
    pub fn try_io<R>(
        &self,
        direction: Direction,
        mut attempt: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let found = self.readiness.state();
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
                self.readiness.clear(direction, found);
                None
            }
            Ok(value) if is_short(&value) => {
                self.readiness.clear(direction, found);
                Some(Ok(value))
            }
            result => Some(result),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.readiness.debug("Source", f)
    }
}

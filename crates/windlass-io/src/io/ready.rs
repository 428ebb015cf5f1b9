//! What a resource is ready for.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::ops;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use windlass_runtime::driver::{self, Direction, Source, shut_down};
use windlass_sync::readiness as bit;

use super::Interest;

/// What a resource is ready for, as far as is known. It may be a false alarm: what is tried then
/// can still fail with `WouldBlock`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready(pub(super) u32);

impl Ready {
    /// Ready for nothing.
    pub const EMPTY: Ready = Ready(0);

    /// Something can be read.
    pub const READABLE: Ready = Ready(bit::READABLE);

    /// Something can be written.
    pub const WRITABLE: Ready = Ready(bit::WRITABLE);

    /// The reading direction is at its end.
    pub const READ_CLOSED: Ready = Ready(bit::READ_CLOSED);

    /// The writing direction is closed.
    pub const WRITE_CLOSED: Ready = Ready(bit::WRITE_CLOSED);

    /// There is priority data.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const PRIORITY: Ready = Ready(bit::PRIORITY);

    /// There is an error.
    pub const ERROR: Ready = Ready(bit::ERROR);

    /// Ready for everything.
    pub const ALL: Ready = Ready(
        bit::READABLE
            | bit::WRITABLE
            | bit::READ_CLOSED
            | bit::WRITE_CLOSED
            | bit::PRIORITY
            | bit::ERROR,
    );

    /// True if it is ready for nothing.
    pub fn is_empty(self) -> bool {
        self == Ready::EMPTY
    }

    /// True if something can be read, or the reading direction is at its end.
    pub fn is_readable(self) -> bool {
        self.has(Ready::READABLE) || self.is_read_closed()
    }

    /// True if something can be written, or the writing direction is closed.
    pub fn is_writable(self) -> bool {
        self.has(Ready::WRITABLE) || self.is_write_closed()
    }

    /// True if the reading direction is at its end.
    pub fn is_read_closed(self) -> bool {
        self.has(Ready::READ_CLOSED)
    }

    /// True if the writing direction is closed.
    pub fn is_write_closed(self) -> bool {
        self.has(Ready::WRITE_CLOSED)
    }

    /// True if there is priority data.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn is_priority(self) -> bool {
        self.has(Ready::PRIORITY)
    }

    /// True if there is an error.
    pub fn is_error(self) -> bool {
        self.has(Ready::ERROR)
    }

    fn has(self, other: Ready) -> bool {
        self.0 & other.0 == other.0
    }
}

impl ops::BitOr for Ready {
    type Output = Ready;

    fn bitor(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }
}

impl ops::BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Ready) {
        self.0 |= other.0;
    }
}

impl ops::BitAnd for Ready {
    type Output = Ready;

    fn bitand(self, other: Ready) -> Ready {
        Ready(self.0 & other.0)
    }
}

impl ops::Sub for Ready {
    type Output = Ready;

    fn sub(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Ready");
        text.field("is_readable", &self.is_readable())
            .field("is_writable", &self.is_writable())
            .field("is_read_closed", &self.is_read_closed())
            .field("is_write_closed", &self.is_write_closed())
            .field("is_error", &self.is_error());
        #[cfg(any(target_os = "linux", target_os = "android"))]
        text.field("is_priority", &self.is_priority());
        text.finish()
    }
}

/// What was found when a resource was waited for; it says which readiness may be cleared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) state: driver::Ready,
    pub(crate) ready: Ready,
}

impl Found {
    pub(crate) fn new(state: driver::Ready, interest: Interest) -> io::Result<Found> {
        if state.is_shut() {
            return Err(shut_down());
        }
        let wanted = interest.bits(Direction::Read) | interest.bits(Direction::Write);
        Ok(Found {
            state,
            ready: Ready(state.bits() & wanted),
        })
    }
}

/// Waits until the resource may be ready for something of `interest`. Cancel-safe.
pub(crate) async fn ready_for(source: &Source, interest: Interest) -> io::Result<Found> {
    let wait = |direction| source.ready_for(direction, interest.bits(direction));
    let wants = |direction| interest.bits(direction) != 0;
    let mut reading = pin!(wants(Direction::Read).then(|| wait(Direction::Read)));
    let mut writing = pin!(wants(Direction::Write).then(|| wait(Direction::Write)));
    let state = poll_fn(|cx| match poll_some(reading.as_mut().as_pin_mut(), cx) {
        Poll::Pending => poll_some(writing.as_mut().as_pin_mut(), cx),
        found => found,
    });
    Found::new(state.await, interest)
}

/// Polls a wait, if there is one.
fn poll_some<F: Future>(wait: Option<Pin<&mut F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    wait.map_or(Poll::Pending, |wait| wait.poll(cx))
}

/// Calls `operation` if the resource may be ready; an answer that it would block proves it is not.
pub(crate) fn try_io<R>(
    source: &Source,
    interest: Interest,
    operation: impl FnOnce() -> io::Result<R>,
) -> io::Result<R> {
    let found = Found::new(source.state(), interest)?;
    if found.ready.is_empty() {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let result = operation();
    if matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
        source.clear_bits(found.ready.0, found.state);
    }
    result
}

/// Calls `operation` whenever the resource may be ready, until it does not block.
pub(crate) async fn async_io<R>(
    source: &Source,
    interest: Interest,
    mut operation: impl FnMut() -> io::Result<R>,
) -> io::Result<R> {
    loop {
        let found = ready_for(source, interest).await?;
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                source.clear_bits(found.ready.0, found.state);
            }
            result => return result,
        }
    }
}

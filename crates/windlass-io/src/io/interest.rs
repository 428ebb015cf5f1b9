//! What a caller waits for.

use std::fmt;
use std::ops;

use windlass_runtime::driver::Direction;

use super::Ready;

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;
const PRIORITY: u8 = 4;
const ERROR: u8 = 8;

/// The events that a caller waits for; several are put together with `|`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    /// Waits until something can be read, or the reading direction is at its end.
    pub const READABLE: Interest = Interest(READABLE);

    /// Waits until something can be written, or the writing direction is closed.
    pub const WRITABLE: Interest = Interest(WRITABLE);

    /// Waits for an error.
    pub const ERROR: Interest = Interest(ERROR);

    /// Waits for priority data, which is urgent data on a TCP socket.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const PRIORITY: Interest = Interest(PRIORITY);

    /// True if reading is waited for.
    pub const fn is_readable(self) -> bool {
        self.0 & READABLE != 0
    }

    /// True if writing is waited for.
    pub const fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }

    /// True if errors are waited for.
    pub const fn is_error(self) -> bool {
        self.0 & ERROR != 0
    }

    /// True if priority data is waited for.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const fn is_priority(self) -> bool {
        self.0 & PRIORITY != 0
    }

    /// Returns both interests in one.
    #[must_use = "this returns the result of the operation, without modifying the original"]
    pub const fn add(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    /// Returns this interest without `other`, or none if nothing is left.
    #[must_use = "this returns the result of the operation, without modifying the original"]
    pub fn remove(self, other: Interest) -> Option<Interest> {
        let left = self.0 & !other.0;
        (left != 0).then_some(Interest(left))
    }

    /// What the kernel is asked to tell of. It tells of errors in any case, and has to be asked for
    /// something.
    pub(super) fn to_mio(self) -> mio::Interest {
        let wanted = [
            (READABLE, mio::Interest::READABLE),
            (WRITABLE, mio::Interest::WRITABLE),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            (PRIORITY, mio::Interest::PRIORITY),
        ];
        let mut wanted = wanted.into_iter().filter(|(bit, _)| self.0 & bit != 0);
        let first = wanted
            .next()
            .map_or(mio::Interest::READABLE, |(_, one)| one);
        wanted.fold(first, |all, (_, one)| all | one)
    }

    /// What has to be ready, in the words of the driver, for those who wait in this direction.
    pub(crate) fn bits(self, direction: Direction) -> u32 {
        let mut ready = Ready::EMPTY;
        match direction {
            Direction::Write if self.is_writable() => {
                ready |= Ready::WRITABLE | Ready::WRITE_CLOSED;
            }
            Direction::Write => {}
            Direction::Read => {
                if self.is_readable() {
                    ready |= Ready::READABLE | Ready::READ_CLOSED;
                }
                if self.0 & PRIORITY != 0 {
                    ready |= Ready(windlass_sync::readiness::PRIORITY) | Ready::READ_CLOSED;
                }
                if self.is_error() {
                    ready |= Ready::ERROR;
                }
            }
        }
        ready.0
    }
}

impl ops::BitOr for Interest {
    type Output = Interest;

    fn bitor(self, other: Interest) -> Interest {
        self.add(other)
    }
}

impl ops::BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Interest) {
        *self = self.add(other);
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (READABLE, "READABLE"),
            (WRITABLE, "WRITABLE"),
            (PRIORITY, "PRIORITY"),
            (ERROR, "ERROR"),
        ];
        let names = names.iter().filter(|(bit, _)| self.0 & bit != 0);
        for (index, (_, name)) in names.enumerate() {
            if index > 0 {
                f.write_str(" | ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

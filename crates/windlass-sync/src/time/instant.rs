//! A moment on the runtime's clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

use windlass_core::sync::clock;

/// A moment on the runtime's clock: monotonic, and virtual in a simulation.
///
/// Arithmetic does not overflow: a moment too far away is the end of time, which never comes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// Returns the current moment.
    pub fn now() -> Instant {
        Instant(clock::now())
    }

    /// The beginning of the clock; nothing was before it.
    pub const fn beginning() -> Instant {
        Instant(0)
    }

    /// A moment that never comes.
    pub const fn never() -> Instant {
        Instant(u64::MAX)
    }

    /// The moment so many nanoseconds after the beginning of the clock.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since the beginning of the clock.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Takes over a moment of the standard library's clock, which is the same clock outside of a
    /// simulation. A moment before the program's first look at the clock is the beginning.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub fn from_std(std: clock::StdInstant) -> Instant {
        Instant(clock::from_std(std))
    }

    /// Returns the moment on the standard library's clock. One that is too far away for it is the
    /// moment some thirty years from now.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub fn into_std(self) -> clock::StdInstant {
        clock::into_std(self.0)
    }

    /// Returns how long ago this was; zero for a moment to come.
    pub fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(*self)
    }

    /// The time from `earlier` to this; zero if it is the other way round.
    pub fn saturating_duration_since(&self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time from `earlier` to this; none if it is the other way round.
    pub fn checked_duration_since(&self, earlier: Instant) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// Returns the time since `earlier`, or zero if that is later.
    pub fn duration_since(&self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }

    /// The moment `time` later; none if that is past the end of time.
    pub fn checked_add(&self, time: Duration) -> Option<Instant> {
        let nanos = u64::try_from(time.as_nanos()).ok()?;
        self.0.checked_add(nanos).map(Instant)
    }

    /// The moment `time` earlier; none if the clock had not begun then.
    pub fn checked_sub(&self, time: Duration) -> Option<Instant> {
        let nanos = u64::try_from(time.as_nanos()).ok()?;
        self.0.checked_sub(nanos).map(Instant)
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, time: Duration) -> Instant {
        self.checked_add(time).unwrap_or(Instant::never())
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, time: Duration) {
        *self = *self + time;
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;
    fn sub(self, time: Duration) -> Instant {
        self.checked_sub(time).unwrap_or(Instant(0))
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, time: Duration) {
        *self = *self - time;
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Instant) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
impl From<clock::StdInstant> for Instant {
    fn from(std: clock::StdInstant) -> Instant {
        Instant::from_std(std)
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
impl From<Instant> for clock::StdInstant {
    fn from(instant: Instant) -> clock::StdInstant {
        instant.into_std()
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == u64::MAX {
            return f.write_str("Instant(never)");
        }
        write!(f, "Instant({:?})", Duration::from_nanos(self.0))
    }
}

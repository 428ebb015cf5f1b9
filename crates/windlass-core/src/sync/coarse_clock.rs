//! A cheap clock for many short times close together.
//!
//! A reading of the system's clock costs as much as a whole small invocation. The processor's own
//! counter costs a third of that, but counts in units of its own. So the system's clock is read
//! once ([`CoarseClock::look`]), and for what comes soon after, the counter says how much later it
//! is.
//!
//! How long a unit is follows from two looks of this process at both clocks, at least
//! five milliseconds apart; until then, in a simulation, and where the system itself does not trust
//! the counter, every reading is one of the system's clock.

use super::clock;

/// How long a look is good for one that is kept, in nanoseconds: half a microsecond off at the end.
const FRESH: u64 = 10_000_000;

/// A look at the clock, and the readings that follow it cheaply.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoarseClock {
    at: u64,
    count: u64,
    /// Nanoseconds per unit of the counter, times 2^32; 0: ask the system.
    scale: u64,
}

impl CoarseClock {
    /// Looks at the clock.
    #[inline]
    pub fn look() -> CoarseClock {
        let scale = counter::scale();
        let (at, count) = match scale {
            0 => (clock::now(), 0),
            _ => counter::both(),
        };
        CoarseClock { at, count, scale }
    }

    /// What time it is, as [`now`](CoarseClock::now), for one that is kept: looks again once the
    /// last look is long ago.
    #[inline]
    pub fn keep(&mut self) -> u64 {
        if self.scale != 0 {
            let now = self.now();
            if now - self.at < FRESH {
                return now;
            }
        }
        *self = CoarseClock::look();
        self.at
    }

    /// Returns the moment of the reading, in [`clock::now`]'s nanoseconds.
    #[inline]
    pub fn at(&self) -> u64 {
        self.at
    }

    /// What time it is: [`clock::now`]'s nanoseconds, exact to a few parts in 100,000 of the time
    /// since the look. Never before the look.
    #[inline]
    pub fn now(&self) -> u64 {
        if self.scale == 0 {
            return clock::now();
        }
        // Another processor's counter may be a few units behind.
        let units = counter::read().saturating_sub(self.count);
        self.at + ((u128::from(units) * u128::from(self.scale)) >> 32) as u64
    }
}

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    not(any(windlass_loom, windlass_shuttle, miri))
))]
mod counter {
    use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::OnceLock;

    use super::clock;

    /// How far two looks must be apart, in nanoseconds: a look is exact to some 50.
    const CALIBRATION: u64 = 5_000_000;

    /// How often both clocks are looked at, if something comes between.
    const LOOKS: usize = 8;

    /// What a look at the system's clock takes at most if nothing comes between, in units of the
    /// counter.
    const SHORT: u64 = 1_000;

    /// Both clocks at the first look, if the counter can be trusted.
    static FIRST: OnceLock<Option<(u64, u64)>> = OnceLock::new();

    static SCALE: AtomicU64 = AtomicU64::new(0);

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: every processor of this architecture has the instruction.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Both clocks at one moment: a thread that is suspended between the two looks again.
    #[inline]
    pub(super) fn both() -> (u64, u64) {
        let mut best = (0, 0);
        let mut least = u64::MAX;
        for _ in 0..LOOKS {
            let before = read();
            let time = clock::now();
            let units = read().saturating_sub(before);
            if units < least {
                least = units;
                best = (time, before + units / 2);
            }
            if units < SHORT {
                break;
            }
        }
        best
    }

    /// Nanoseconds per unit times 2^32, or 0 while that is not known.
    #[inline]
    pub(super) fn scale() -> u64 {
        if super::super::with_world(|world| world.is_some()) {
            return 0;
        }
        // Relaxed: the number says everything.
        match SCALE.load(Relaxed) {
            0 => derive(),
            scale => scale,
        }
    }

    #[cold]
    fn derive() -> u64 {
        let first = FIRST.get_or_init(|| is_trusted().then(both));
        let Some((then, count)) = *first else {
            return 0;
        };
        let (now, units) = both();
        let time = now.saturating_sub(then);
        let units = units.saturating_sub(count);
        if time < CALIBRATION || units == 0 {
            return 0;
        }
        let scale = ((u128::from(time) << 32) / u128::from(units)) as u64;
        SCALE.store(scale, Relaxed);
        scale
    }

    /// Whether the system counts time with it: then it has the same rate and value everywhere.
    fn is_trusted() -> bool {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
    }
}

#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    not(any(windlass_loom, windlass_shuttle, miri))
)))]
mod counter {
    pub(super) fn read() -> u64 {
        0
    }

    pub(super) fn both() -> (u64, u64) {
        (super::clock::now(), 0)
    }

    pub(super) fn scale() -> u64 {
        0
    }
}

#[cfg(all(test, not(any(windlass_loom, windlass_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_kept_stays_with_the_clock() {
        let mut near = CoarseClock::default();
        let mut last = 0;
        for _ in 0..30 {
            let before = clock::now();
            let now = near.keep();
            let after = clock::now();
            // Ten times what it may be off.
            assert!(
                now + 5_000 >= before && now <= after + 5_000,
                "{before} {now} {after}"
            );
            assert!(now >= last);
            last = now;
            wait(1_000_000);
        }
    }

    fn wait(nanos: u64) {
        let until = clock::now() + nanos;
        while clock::now() < until {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn near_readings_agree_with_the_clock() {
        CoarseClock::look();
        wait(10_000_000);
        for _ in 0..100 {
            let near = CoarseClock::look();
            wait(1_000_000);
            let before = clock::now();
            let now = near.now();
            let after = clock::now();
            // A microsecond either way, and more if this thread was away for long.
            let close = 1_000 + (after - near.at()) / 5_000;
            assert!(now + close >= before, "{now} is before {before}");
            assert!(now <= after + close, "{now} is after {after}");
            assert!(near.at() < now);
        }
    }
}

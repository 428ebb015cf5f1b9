//! How long a supervisor waits before it tries again.

use std::time::Duration;

/// Growing pauses between attempts: each is at least `factor` times the one before, up to `most`. A
/// little chance is added on top, so that many that failed together do not come back together.
///
/// ```
/// use std::time::Duration;
/// use windlass_actor::supervisor::Backoff;
///
/// let backoff = Backoff { first: Duration::from_millis(100), ..Backoff::default() };
/// # let _ = backoff;
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// The first pause; zero: at once, always.
    pub first: Duration,
    /// By how much pauses grow; below 1 counts as 1.
    pub factor: f64,
    /// The longest pause, before the chance is added.
    pub most: Duration,
    /// The most that chance adds, as a part of the pause: 0 to 0.5.
    pub jitter: f64,
    /// A child that has run for this long begins anew with the first pause.
    pub reset_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            first: Duration::from_millis(100),
            factor: 2.0,
            most: Duration::from_secs(30),
            jitter: 0.25,
            reset_after: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    /// The pause before attempt number `attempt`, counted from 0; `chance` is any number.
    pub(super) fn pause(&self, attempt: u32, chance: u64) -> Duration {
        let most = self.most.as_secs_f64();
        let grown = self.factor.max(1.0).powi(attempt.min(1_000) as i32);
        let pause = (self.first.as_secs_f64() * grown).min(most);
        let part = (chance >> 11) as f64 / (1_u64 << 53) as f64;
        let pause = pause * (1.0 + self.jitter.clamp(0.0, 0.5) * part);
        // What is no number or too long is the longest.
        Duration::try_from_secs_f64(pause).unwrap_or(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_whatever_chance_adds() {
        let backoff = Backoff::default();
        for attempt in 0..8 {
            let longest = backoff.pause(attempt, u64::MAX);
            assert!(longest < backoff.pause(attempt + 1, 0), "{attempt}");
        }
        let most = backoff.most.mul_f64(1.25);
        assert!(backoff.pause(u32::MAX, u64::MAX) <= most);
        assert_eq!(backoff.pause(0, 0), backoff.first);
    }
}

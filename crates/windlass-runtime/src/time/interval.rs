//! Ticks.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;

use crate::time::{Instant, Sleep, sleep_until};

/// A tick that is this late at most counts as in time.
const SLACK: Duration = Duration::from_millis(5);

/// What happens to ticks that were not awaited in time: more than five milliseconds late, as in
/// tokio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTickBehavior {
    /// They follow at once, one after the other, until the schedule is caught up with.
    #[default]
    Burst,
    /// The schedule is shifted: the next tick comes a full period after this one.
    Delay,
    /// They are left out: the next tick is the next one of the schedule that is still to come.
    Skip,
}

impl MissedTickBehavior {
    /// Returns the tick that follows one that was scheduled for `scheduled` and is taken `now`. For
    /// schedules that are no [`Interval`].
    pub fn next_tick(self, scheduled: Instant, now: Instant, period: Duration) -> Instant {
        if now <= scheduled + SLACK {
            return scheduled + period;
        }
        match self {
            MissedTickBehavior::Burst => scheduled + period,
            MissedTickBehavior::Delay => now + period,
            MissedTickBehavior::Skip => {
                let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
                let late = now.nanos() - scheduled.nanos();
                scheduled + Duration::from_nanos((late / period + 1).saturating_mul(period))
            }
        }
    }
}

/// Ticks every `period`, the first time at once.
///
/// # Panics
/// If `period` is zero.
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Ticks every `period`, the first time at `start`.
///
/// # Panics
/// If `period` is zero.
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        period > Duration::ZERO,
        "an interval of zero would tick for ever: choose a period, or use yield_now"
    );
    Interval {
        sleep: Box::pin(sleep_until(start)),
        period,
        missed: MissedTickBehavior::default(),
    }
}

/// Made by [`interval`] and [`interval_at`].
#[derive(Debug)]
pub struct Interval {
    sleep: Pin<Box<Sleep>>,
    period: Duration,
    missed: MissedTickBehavior,
}

impl Interval {
    /// Sets what happens to ticks that were not awaited in time.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed = behavior;
    }

    /// Returns what happens to ticks that were not awaited in time.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed
    }

    /// The time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The next tick; gives the moment for which it was scheduled. Cancel-safe: a dropped wait
    /// loses no tick.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for what `tick` awaits.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.sleep.as_mut().poll(cx));
        let scheduled = self.sleep.deadline();
        let next = self
            .missed
            .next_tick(scheduled, Instant::now(), self.period);
        self.sleep.as_mut().reset(next);
        Poll::Ready(scheduled)
    }

    /// The next tick comes a full period from now.
    pub fn reset(&mut self) {
        let next = Instant::now() + self.period;
        self.sleep.as_mut().reset(next);
    }

    /// The next tick comes at once.
    pub fn reset_immediately(&mut self) {
        self.sleep.as_mut().reset(Instant::now());
    }

    /// The next tick comes after this time; those behind it follow at the period.
    pub fn reset_after(&mut self, after: Duration) {
        self.sleep.as_mut().reset(Instant::now() + after);
    }

    /// The next tick comes at `deadline`; those behind it follow at the period.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.as_mut().reset(deadline);
    }
}

impl Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll_tick(cx).map(Some)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

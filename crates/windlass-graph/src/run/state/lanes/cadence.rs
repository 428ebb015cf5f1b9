//! Lanes on the real clock: `wall_clock_enabled`.
//!
//! If a graph has such a lane, there is an epoch for each instant at which one of them is due, or
//! at which a timer or window of a lane without a rate ends. Only the lanes that are due collect;
//! messages for the others wait. A lane without a rate is due in every epoch. All lanes'
//! clocks show the real time since the run began.
//!
//! Deadlines are absolute: a tick that is late does not make all that follow late. What a tick does
//! that took longer than its period is for `overrun_policy` to say.

use crate::run::state::tables::nanos;
use windlass_plan::model::{Lane, OnDeadlineMiss, OverrunPolicy};

/// A lane that follows the real clock.
#[derive(Debug, Clone)]
pub(crate) struct Cadence {
    period: u64,
    /// When the next tick is, since the run began.
    due: u64,
    last_start: Option<u64>,
    policy: OverrunPolicy,
    /// How long after it was due a tick may end.
    deadline: u64,
    /// Whether a tick that misses it takes the next one along.
    skips: bool,
}

impl Cadence {
    pub(crate) fn of(lane: &Lane) -> Option<Cadence> {
        lane.follows_clock().then_some(Cadence {
            period: nanos(lane.cadence()),
            due: 0,
            last_start: None,
            policy: lane.overrun_policy,
            deadline: match nanos(lane.deadline) {
                0 => nanos(lane.cadence()),
                deadline => deadline,
            },
            skips: lane.on_deadline_miss == OnDeadlineMiss::Skip,
        })
    }

    /// Returns when the next tick is, since the run began.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Begins a tick that is due; returns how late it is, and how far its distance to the tick
    /// before is from the period, if there was one.
    pub(crate) fn begin(&mut self, now: u64) -> (u64, Option<u64>) {
        let last = self.last_start.replace(now);
        let jitter = last.map(|last| (now - last).abs_diff(self.period));
        (now - self.due, jitter)
    }

    /// Ends a tick that was due; says when the next is.
    pub(crate) fn end(&mut self, end: u64) -> TickEnd {
        let (mut due, mut skipped) = self.next(end);
        let late = end > self.due.saturating_add(self.period);
        let missed = end > self.due.saturating_add(self.deadline);
        if missed && self.skips {
            due = due.saturating_add(self.period);
            skipped += 1;
        }
        self.due = due;
        TickEnd {
            late,
            skipped,
            missed,
        }
    }

    /// When the next tick is, and how many were left out, if one that was due ended at `end`.
    fn next(&self, end: u64) -> (u64, u64) {
        let nominal = self.due.saturating_add(self.period);
        if end <= nominal {
            return (nominal, 0);
        }
        let missed = (end - self.due) / self.period;
        match self.policy {
            OverrunPolicy::DropTick => (end.saturating_add(self.period), missed),
            // Two periods after it was due; after a tick that took longer than that, at the first
            // instant of the lane's own grid that is not over. Ticks are left out, never made up
            // for.
            OverrunPolicy::SkipNext => {
                let periods = (missed + 1).max(2);
                let next = self.due.saturating_add(self.period.saturating_mul(periods));
                (next, periods - 1)
            }
            OverrunPolicy::CatchUpOnce => (end, missed - 1),
        }
    }
}

/// What the end of a tick on the real clock was like.
pub(crate) struct TickEnd {
    /// Whether it ended after the next was due.
    pub(crate) late: bool,
    /// How many ticks were left out.
    pub(crate) skipped: u64,
    /// Whether it ended after its deadline.
    pub(crate) missed: bool,
}

#[cfg(test)]
mod tests {
    use super::Cadence;
    use windlass_plan::model::OverrunPolicy;

    fn next(policy: OverrunPolicy, end: u64) -> (u64, u64) {
        let cadence = Cadence {
            period: 10,
            due: 100,
            last_start: None,
            policy,
            deadline: 10,
            skips: false,
        };
        cadence.next(end)
    }

    #[test]
    fn a_tick_in_time_is_followed_by_the_next_whatever_the_policy() {
        for &policy in OverrunPolicy::ALL {
            assert_eq!(next(policy, 104), (110, 0));
            assert_eq!(next(policy, 110), (110, 0));
        }
    }

    #[test]
    fn a_late_tick_is_followed_as_its_policy_says() {
        assert_eq!(next(OverrunPolicy::DropTick, 135), (145, 3));
        assert_eq!(next(OverrunPolicy::SkipNext, 115), (120, 1));
        assert_eq!(next(OverrunPolicy::SkipNext, 119), (120, 1));
        assert_eq!(next(OverrunPolicy::SkipNext, 120), (130, 2));
        assert_eq!(next(OverrunPolicy::SkipNext, 135), (140, 3));
        assert_eq!(next(OverrunPolicy::CatchUpOnce, 135), (135, 2));
    }
}

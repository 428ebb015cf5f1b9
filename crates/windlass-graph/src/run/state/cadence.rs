//! Lanes on the real clock: `wall_clock_enabled`.
//!
//! If a graph has such a lane, there is an epoch for each instant at which one of them is due, or at which a timer
//! or window of a lane without a rate ends. Only the lanes that are due collect; what has come for the others waits.
//! A lane without a rate is due in every epoch. All lanes' clocks show the real time since the run began.
//!
//! Deadlines are absolute: a tick that is late does not make all that follow late. What a tick does that took
//! longer than its period is for `overrun_policy` to say.

use windlass_core::sync::clock;
use windlass_sync::CancellationToken;

use crate::run::machine::Machine;
use crate::run::outside::doors::{wait_here, wait_outside};
use crate::run::state::lane::LaneState;
use crate::run::state::tables::nanos;
use windlass_plan::model::{Lane, LaneKind, OnDeadlineMiss, OverrunPolicy};

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
            // instant of the lane's own grid that is not over. Ticks are left out, never made up for.
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

impl Machine {
    /// The first epoch is about to begin: time counts from now, if it is real.
    pub(crate) fn begin_clock(&mut self, now: u64) {
        let follows = self.lanes.iter().any(|l| l.cadence_on_clock.is_some());
        let simulates = |l: &LaneState| l.cadence > 0 && l.cadence_on_clock.is_none();
        let simulates = self.lanes.iter().any(simulates);
        // What comes from outside comes in real time; a rate that is simulated says that nothing else does.
        self.clock.is_real = follows || (!self.doors.is_empty() && !simulates);
        if self.clock.is_real {
            self.clock.zero = now;
        }
        if let Some(script) = self.recording.script.clone() {
            self.clock.is_real = script.on_clock;
            let components = self.plan.graph.components.iter().enumerate();
            let doors = components.filter(|(_, component)| script.doors.contains(&component.id));
            self.doors = doors.map(|(place, _)| place).collect();
            for &component in &self.doors {
                self.members[component].has_door = true;
            }
        }
        let steps = |l: &LaneState| l.kind == LaneKind::ManualStep;
        self.clock.has_turns = self.clock.is_real || self.lanes.iter().any(steps);
    }

    /// Sleeps until there is something to do, until somebody asks to stop, or until the run's time is over; then
    /// says which lanes are due. `idle`: nothing ran in the last epoch.
    pub(crate) async fn wait(&mut self, stop: &CancellationToken, left: Option<u64>, idle: bool) {
        let begun = self.elapsed();
        let end = left.map_or(u64::MAX, |left| begun.saturating_add(left));
        let bell = self.inbox.bell.clone();
        while !stop.is_cancelled() {
            let next = self.next_epoch(idle).map_or(end, |next| next.min(end));
            let now = self.elapsed();
            if now >= next {
                break;
            }
            // Who asks to stop wakes us up.
            let left = (next < u64::MAX).then(|| next - now);
            match left.filter(|_| self.driver.is_some()) {
                Some(left) => wait_here(&bell, stop, left),
                None => wait_outside(&bell, stop, left).await,
            }
        }
        if self.clock.is_real {
            self.find_due(begun);
        }
    }

    /// When the next epoch is to begin; none: when something comes from outside.
    fn next_epoch(&self, idle: bool) -> Option<u64> {
        const AT_ONCE: Option<u64> = Some(0);
        let open = !self.doors.is_empty() || self.waits_for_steps();
        let asked = self.has_steps() || self.inbox.is_asked();
        if open && (asked || self.has_news() || !self.channels.deferred.is_empty()) {
            return AT_ONCE;
        }
        if self.clock.is_real && self.has_finished_async_loop() {
            return AT_ONCE;
        }
        let instant = self.clock.is_real.then(|| self.next_instant()).flatten();
        if instant.is_some() {
            return instant;
        }
        let expects = || self.expects_news() || self.waits_for_steps() || self.has_async_loops();
        // Simulated time passes in epochs.
        let passes = || !self.clock.is_real && self.follows_time();
        match idle && expects() && !passes() {
            true => None,
            false => AT_ONCE,
        }
    }

    /// Whether time will make something run.
    fn follows_time(&self) -> bool {
        let triggers = self.triggers.iter().zip(&self.members);
        let mut triggers = triggers.filter(|(_, member)| member.active && !member.finished);
        triggers.any(|(trigger, _)| trigger.next_wake().is_some()) || self.has_async_loops()
    }

    /// Says which lanes are due.
    fn find_due(&mut self, begun: u64) {
        let now = self.elapsed();
        for lane in &mut self.lanes {
            lane.now = now;
            let Some(cadence) = &mut lane.cadence_on_clock else {
                continue;
            };
            lane.is_due = cadence.due <= now;
            if !lane.is_due {
                continue;
            }
            let counts = &mut lane.counts;
            counts.blocked_ns += now - begun;
            counts.max_lateness_ns = counts.max_lateness_ns.max(now - cadence.due);
            lane.lateness.add(now - cadence.due);
            if let Some(last) = cadence.last_start.replace(now) {
                counts.jitter_ns = (now - last).abs_diff(cadence.period);
            }
        }
    }

    /// The next instant at which something is to be done.
    fn next_instant(&self) -> Option<u64> {
        let rates = self
            .lanes
            .iter()
            .filter_map(|lane| lane.cadence_on_clock.as_ref());
        let rates = rates.map(|cadence| cadence.due);
        let windows = (0..self.lanes.len()).filter_map(|place| self.nearest_wake(place));
        rates.chain(windows).min()
    }

    /// A tick of this lane has ended; says when the next is. None if it was not due, or follows no clock.
    pub(crate) fn end_cadence(&mut self, place: usize) -> Option<TickEnd> {
        if self.recording.script.is_some() {
            return None;
        }
        let end = self.elapsed();
        let lane = &mut self.lanes[place];
        let cadence = lane.cadence_on_clock.as_mut().filter(|_| lane.is_due)?;
        let (mut due, mut skipped) = cadence.next(end);
        let late = end > cadence.due.saturating_add(cadence.period);
        let missed = end > cadence.due.saturating_add(cadence.deadline);
        if missed && cadence.skips {
            due = due.saturating_add(cadence.period);
            skipped += 1;
        }
        cadence.due = due;
        lane.counts.skipped_ticks += skipped;
        Some(TickEnd {
            late,
            skipped,
            missed,
        })
    }

    /// Since the run began, on the real clock.
    fn elapsed(&self) -> u64 {
        clock::now().saturating_sub(self.clock.zero)
    }
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

//! One lane in a run.

use windlass_runtime::Handle;
use windlass_runtime::dispatch::DispatcherError;

use crate::run::exec::pool::{Pool, pools_of};
use crate::run::sinks::counts::LaneCounts;
use crate::run::sinks::histogram::Histogram;
use crate::run::state::lanes::cadence::{Cadence, TickEnd};
use crate::run::state::tables::nanos;
use crate::run::state::triggers::policy::follows_time;
use windlass_plan::compile::Plan;
use windlass_plan::model::LaneKind;

/// A lane in a run; its clock is in `Lanes`.
#[derive(Debug, Clone)]
pub(crate) struct LaneState {
    has_ticked: bool,
    kind: LaneKind,
    /// The period of a lane that has a rate; otherwise 0.
    period: u64,
    /// If it follows the real clock.
    cadence: Option<Cadence>,
    /// Whether it collects in this epoch.
    is_due: bool,
    tick_budget: u64,
    /// The components that time can make ready.
    timed: Vec<usize>,
    /// The loops that wait between their runs.
    paced_loops: Vec<usize>,
    /// Its threads: none, some, or some for each component.
    pools: Vec<Pool>,
    counts: LaneCounts,
    /// How late ticks on the real clock begin.
    lateness: Histogram,
    /// Steps that were asked for, of a lane that waits for them.
    steps: u64,
    /// Whether it runs in every epoch all the same.
    steps_always: bool,
    /// What its invocations took in this epoch.
    tick_used: u64,
}

impl LaneState {
    pub(crate) fn new(
        plan: &Plan,
        place: usize,
        runtime: Option<&Handle>,
    ) -> Result<LaneState, DispatcherError> {
        let lane = &plan.graph.lanes[place];
        let of_lane = |component: &usize| plan.nodes[*component].lane == place;
        let paced = |&composite: &usize| {
            let composite = &plan.graph.loops[composite];
            let first = composite.components.first();
            let first = first.and_then(|id| plan.graph.component(id));
            !composite.policy.min_interval.is_zero()
                && first.is_some_and(|(component, _)| of_lane(&component))
        };
        let pools = match runtime {
            Some(runtime) => pools_of(plan, place, runtime)?,
            None => Vec::new(),
        };
        let budget = match nanos(lane.tick_budget) {
            0 => nanos(lane.cadence()),
            budget => budget,
        };
        Ok(LaneState {
            has_ticked: false,
            kind: lane.kind,
            period: match lane.kind {
                LaneKind::FixedRate => nanos(lane.cadence()),
                _ => 0,
            },
            cadence: Cadence::of(lane),
            is_due: true,
            tick_budget: budget,
            timed: (0..plan.nodes.len())
                .filter(of_lane)
                .filter(|&c| follows_time(&plan.graph.components[c]))
                .collect(),
            paced_loops: (0..plan.graph.loops.len()).filter(paced).collect(),
            counts: LaneCounts {
                workers: pools.iter().map(|pool| pool.width as u64).sum(),
                ..LaneCounts::default()
            },
            pools,
            lateness: Histogram::default(),
            steps: 0,
            steps_always: false,
            tick_used: 0,
        })
    }

    /// Returns the same lane for a part of the run that goes on beside it, without its counts.
    pub(crate) fn beside(&self) -> LaneState {
        LaneState {
            counts: LaneCounts::default(),
            lateness: Histogram::default(),
            tick_used: 0,
            ..self.clone()
        }
    }

    pub(crate) fn kind(&self) -> LaneKind {
        self.kind
    }

    /// Whether it has a rate, on whatever clock.
    pub(crate) fn has_rate(&self) -> bool {
        self.period > 0
    }

    /// Whether it follows the real clock.
    #[inline]
    pub(crate) fn follows_clock(&self) -> bool {
        self.cadence.is_some()
    }

    /// Returns when its next tick on the real clock is, if it follows that.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        self.cadence.as_ref().map(Cadence::due)
    }

    /// Returns the components that time can make ready.
    pub(crate) fn timed(&self) -> &[usize] {
        &self.timed
    }

    /// Returns the loops that wait between their runs.
    pub(crate) fn paced_loops(&self) -> &[usize] {
        &self.paced_loops
    }

    /// Returns its threads.
    pub(crate) fn pools(&self) -> &[Pool] {
        &self.pools
    }

    pub(crate) fn counts(&self) -> &LaneCounts {
        &self.counts
    }

    /// Takes in what the same lane of another part of the run has counted.
    pub(crate) fn add_counts(&mut self, beside: &LaneState) {
        self.counts.add(&beside.counts);
    }

    /// Counts a tick that took longer than it may.
    pub(crate) fn count_overrun(&mut self, over: bool) {
        self.counts.overruns += u64::from(over);
    }

    /// Counts a tick that ended after its deadline.
    pub(crate) fn count_deadline_miss(&mut self) {
        self.counts.deadline_misses += 1;
    }

    /// Counts invocations that it did not admit. `is_low`: of a component of low priority.
    pub(crate) fn count_rejected(&mut self, invocations: u64, is_low: bool) {
        self.counts.rejected += invocations;
        if is_low {
            self.counts.low_priority_rejected += invocations;
        }
    }

    /// Counts invocations that were sent to as many threads.
    pub(crate) fn count_flight(&mut self, invocations: u64, threads: u64) {
        let (counts, queued) = (&mut self.counts, invocations.saturating_sub(threads));
        counts.in_flight = counts.in_flight.max(invocations);
        counts.queue_depth = counts.queue_depth.max(queued);
    }

    /// Sets what its pool has counted.
    pub(crate) fn set_pool_counts(&mut self, most_active: u64, guarded: u64) {
        self.counts.active = most_active;
        self.counts.starvation_guard = guarded;
    }

    /// Returns what this part of its ticks on the real clock were not later than.
    pub(crate) fn lateness_at(&self, part: f64) -> u64 {
        self.lateness.at(part)
    }

    /// Whether it collects in this epoch.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    pub(crate) fn set_due(&mut self, is_due: bool) {
        self.is_due = is_due;
    }

    /// Returns where simulated time moves to with the next tick: by the period, or to the nearest
    /// timer or window.
    pub(crate) fn simulate_tick(&mut self, now: u64, nearest: Option<u64>) -> u64 {
        let had_ticked = std::mem::replace(&mut self.has_ticked, true);
        match (self.period, nearest) {
            (0, Some(wake)) => now.max(wake),
            (0, None) => now,
            (period, _) if had_ticked => now.saturating_add(period),
            _ => now,
        }
    }

    /// Begins a tick.
    pub(crate) fn begin_tick(&mut self) {
        self.counts.ticks += 1;
        self.tick_used = 0;
    }

    /// Looks whether it is due, if it follows the real clock. `begun`: when the run began to wait.
    pub(crate) fn look_at_clock(&mut self, now: u64, begun: u64) {
        let Some(cadence) = &mut self.cadence else {
            return;
        };
        self.is_due = cadence.due() <= now;
        if !self.is_due {
            return;
        }
        let (late, jitter) = cadence.begin(now);
        let counts = &mut self.counts;
        counts.blocked_ns += now - begun;
        counts.max_lateness_ns = counts.max_lateness_ns.max(late);
        counts.jitter_ns = jitter.unwrap_or(counts.jitter_ns);
        self.lateness.add(late);
    }

    /// Ends a tick on the real clock; none if it follows none.
    pub(crate) fn end_cadence(&mut self, end: u64) -> Option<TickEnd> {
        let ended = self.cadence.as_mut()?.end(end);
        self.counts.skipped_ticks += ended.skipped;
        Some(ended)
    }

    /// Returns what its invocations took in this epoch, and whether that is more than they may.
    pub(crate) fn tick_used(&self) -> (u64, bool) {
        let over = self.tick_budget > 0 && self.tick_used > self.tick_budget;
        (self.tick_used, over)
    }

    /// Counts an invocation.
    #[inline]
    pub(crate) fn count_call(&mut self, duration: u64, priority: usize) {
        self.tick_used += duration;
        self.counts.completed += 1;
        self.counts.last_callback_ns = duration;
        self.counts.completed_by_priority[priority] += 1;
    }

    // Steps.

    /// Adds steps that were asked for.
    pub(crate) fn add_steps(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
    }

    /// Lets it run in every epoch, as if it were stepped.
    pub(crate) fn step_always(&mut self) {
        self.steps_always = true;
    }

    /// Whether a step was asked for that has not been done.
    pub(crate) fn has_steps(&self) -> bool {
        self.steps > 0
    }

    /// Whether it runs only when it is stepped.
    pub(crate) fn waits_for_steps(&self) -> bool {
        self.kind == LaneKind::ManualStep && !self.steps_always
    }

    /// Says whether it is due in this epoch, if it is a lane that is stepped.
    pub(crate) fn take_step(&mut self) {
        if self.kind == LaneKind::ManualStep {
            self.is_due = self.steps_always || self.steps > 0;
            self.steps = self.steps.saturating_sub(1);
        }
    }
}

//! Lanes in a run: their clocks, their threads, and what they count.
//!
//! Time is simulated unless a lane follows the real clock (`cadence.rs`): each epoch is a tick of every lane, on the
//! lane's own clock. The clock of a lane with a rate goes on by its period; that of any other goes to the nearest
//! timer or window of its components.

use windlass_runtime::Handle;
use windlass_runtime::dispatch::DispatcherError;

use crate::run::exec::threads::{Pool, pools_of};
use crate::run::machine::{Halt, Machine};
use crate::run::result::ErrorCode;
use crate::run::sinks::counts::LaneCounts;
use crate::run::sinks::health::{HealthKind, HealthSubject};
use crate::run::sinks::histogram::Histogram;
use crate::run::sinks::trace::{Recorded, TraceName};
use crate::run::state::cadence::Cadence;
use crate::run::state::tables::nanos;
use crate::run::state::trigger::follows_time;
use windlass_plan::compile::Plan;
use windlass_plan::model::{LaneKind, OnDeadlineMiss};

/// A lane in a run.
#[derive(Debug, Clone)]
pub(crate) struct LaneState {
    /// Nanoseconds since the run began, on this lane's clock.
    pub(crate) now: u64,
    has_ticked: bool,
    pub(crate) kind: LaneKind,
    pub(crate) cadence: u64,
    /// If it follows the real clock.
    pub(crate) cadence_on_clock: Option<Cadence>,
    /// Whether it collects in this epoch.
    pub(crate) is_due: bool,
    tick_budget: u64,
    /// The components that time can make ready.
    timed: Vec<usize>,
    /// The loops that wait between their runs.
    paced_loops: Vec<usize>,
    /// Its threads: none, some, or some for each component.
    pub(crate) pools: Vec<Pool>,
    pub(crate) counts: LaneCounts,
    /// How late ticks on the real clock begin.
    pub(crate) lateness: Histogram,
    /// Steps that somebody has asked for, of a lane that waits for that.
    pub(crate) steps: u64,
    /// Whether it runs in every epoch all the same.
    pub(crate) steps_always: bool,
    /// What its invocations took in this epoch.
    pub(crate) tick_used: u64,
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
            now: 0,
            has_ticked: false,
            kind: lane.kind,
            cadence: match lane.kind {
                LaneKind::FixedRate => nanos(lane.cadence()),
                _ => 0,
            },
            cadence_on_clock: Cadence::of(lane),
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

    /// What this part of its ticks on the real clock were not later than.
    pub(crate) fn lateness_at(&self, part: f64) -> u64 {
        self.lateness.at(part)
    }

    /// Moves its clock on.
    fn simulate_tick(&mut self, nearest: Option<u64>) {
        match (self.cadence, nearest) {
            (0, Some(wake)) => self.now = self.now.max(wake),
            (0, None) => {}
            (cadence, _) if self.has_ticked => self.now = self.now.saturating_add(cadence),
            _ => {}
        }
        self.has_ticked = true;
    }

    /// A lane of its own for a part of the run that goes on beside it.
    pub(crate) fn beside(&self) -> LaneState {
        LaneState {
            counts: LaneCounts::default(),
            lateness: Histogram::default(),
            tick_used: 0,
            ..self.clone()
        }
    }
}

/// How many ticks that were left out at once are traced one by one; all are counted.
const SKIPPED_TRACED: u64 = 64;

impl Machine {
    /// Says which of the lanes that wait for steps are due in this epoch.
    pub(crate) fn take_steps(&mut self) {
        if !self.clock.has_turns || self.recording.script.is_some() {
            return;
        }
        for (place, steps) in self.inbox.take_steps() {
            self.lanes[place].steps = self.lanes[place].steps.saturating_add(steps);
        }
        for lane in &mut self.lanes {
            if lane.kind == LaneKind::ManualStep {
                lane.is_due = lane.steps_always || lane.steps > 0;
                lane.steps = lane.steps.saturating_sub(1);
            }
        }
    }

    /// Whether lanes wait for somebody who steps them.
    pub(crate) fn waits_for_steps(&self) -> bool {
        let waits = |l: &LaneState| l.kind == LaneKind::ManualStep && !l.steps_always;
        self.lanes.iter().any(waits)
    }

    /// Whether somebody has stepped a lane, and that has not been done.
    pub(crate) fn has_steps(&self) -> bool {
        self.lanes.iter().any(|lane| lane.steps > 0)
    }

    /// A tick of every lane that is due.
    pub(crate) fn tick_lanes(&mut self) {
        for place in 0..self.lanes.len() {
            if !self.lanes[place].is_due {
                continue;
            }
            if !self.clock.is_real {
                let nearest = self.nearest_wake(place);
                self.lanes[place].simulate_tick(nearest);
            }
            let lane = &mut self.lanes[place];
            lane.counts.ticks += 1;
            lane.tick_used = 0;
            if lane.kind == LaneKind::FixedRate && self.sinks.trace.on {
                let at = windlass_core::sync::clock::now();
                self.note_tick(place, TraceName::FixedRateTickBegin, at, 0);
            }
        }
    }

    /// When time makes something of this lane ready, if nothing is.
    pub(crate) fn nearest_wake(&self, place: usize) -> Option<u64> {
        let lane = &self.lanes[place];
        if lane.cadence > 0 {
            return None;
        }
        let runs = |&&c: &&usize| self.members[c].active && !self.members[c].finished;
        let triggers = lane.timed.iter().filter(runs);
        let triggers = triggers.filter_map(|&c| self.triggers[c].next_wake());
        let loops = lane.paced_loops.iter().filter(|&&l| self.loop_has_work(l));
        let loops = loops.filter_map(|&composite| self.loop_wake(composite));
        triggers.chain(loops).min()
    }

    /// The end of an epoch for the lanes that have a rate.
    pub(crate) fn end_ticks(&mut self, start: u64, end: u64) -> Result<(), Halt> {
        for place in 0..self.lanes.len() {
            let lane = &self.lanes[place];
            if lane.kind != LaneKind::FixedRate || !lane.is_due {
                continue;
            }
            let used = lane.tick_used;
            let over_budget = lane.tick_budget > 0 && used > lane.tick_budget;
            let ended = self.end_cadence(place);
            let over = over_budget || ended.as_ref().is_some_and(|ended| ended.late);
            self.lanes[place].counts.overruns += u64::from(over);
            if self.sinks.trace.on {
                self.note_tick(place, TraceName::FixedRateTick, start, end - start);
                self.note_tick(place, TraceName::FixedRateTickEnd, end, 0);
                if over {
                    self.note_tick(place, TraceName::FixedRateOverrun, end, used);
                }
                let skipped = ended.as_ref().map_or(0, |ended| ended.skipped);
                for _ in 0..skipped.min(SKIPPED_TRACED) {
                    self.note_tick(place, TraceName::FixedRateSkippedTick, end, 0);
                }
            }
            if ended.is_some_and(|ended| ended.missed) {
                self.miss_deadline(place, end)?;
            }
        }
        Ok(())
    }

    /// A tick has ended after its deadline: `on_deadline_miss` says what that does.
    fn miss_deadline(&mut self, place: usize, at: u64) -> Result<(), Halt> {
        self.lanes[place].counts.deadline_misses += 1;
        if self.sinks.trace.on {
            self.note_tick(place, TraceName::FixedRateDeadlineMiss, at, 0);
        }
        let lane = &self.plan.graph.lanes[place];
        self.sinks.health.raise(
            HealthKind::LaneDeadlineMiss,
            HealthSubject::Lane(place as u32),
        );
        if lane.on_deadline_miss == OnDeadlineMiss::Stop {
            let message = format!(
                "a tick of lane {} ended after its deadline: give it more time (deadline_ms, period_ms), or choose another on_deadline_miss",
                lane.id
            );
            return Err(self.halt("deadline", ErrorCode::Runtime, None, message));
        }
        Ok(())
    }

    fn note_tick(&mut self, place: usize, name: TraceName, at: u64, duration: u64) {
        let event = Recorded {
            lane: place as u32,
            duration,
            ..Recorded::new(name, self.env.epoch, at)
        };
        self.sinks.trace.push(event);
    }
}

//! Lanes in a run: their clocks, their threads, and what they count.
//!
//! Time is simulated unless a lane follows the real clock (`cadence.rs`): each epoch is a tick of
//! every lane, on the lane's own clock. The clock of a lane with a rate goes on by its period; that
//! of any other goes to the nearest timer or window of its components.

pub(crate) mod cadence;
pub(crate) mod lane;

use std::collections::BTreeMap;

use windlass_core::sync::clock;
use windlass_runtime::Handle;
use windlass_runtime::dispatch::{Attributes, DispatcherError};

use crate::record::{LaneTurn, Names};
use crate::run::exec::grants::{Grants, LaneGrant};
use crate::run::exec::memory_lock::RunMemory;
use crate::run::exec::pool::Pool;
use crate::run::result::ErrorCode;
use crate::run::run_state::Halt;
use crate::run::sinks::Sinks;
use crate::run::sinks::health::{HealthKind, HealthSubject};
use crate::run::sinks::sink::{LaneTick, Sink};
use crate::run::sinks::trace::TraceName;
use crate::run::state::lanes::lane::LaneState;
use windlass_plan::compile::Plan;
use windlass_plan::model::{Graph, LaneKind, OnDeadlineMiss};

/// The lanes of a run, by their place in the graph, and how their time goes.
#[derive(Default)]
pub(crate) struct Lanes {
    by_lane: Vec<LaneState>,
    /// Nanoseconds since the run began, on each lane's clock.
    times: Vec<u64>,
    /// Whether time is real.
    is_real: bool,
    /// Whether there are epochs in which not all lanes are due.
    has_turns: bool,
    /// Where lanes count from, if time is real.
    zero: u64,
    /// What the thread that drives the run was found to have, if that is its own.
    driver: Option<Attributes>,
    memory: RunMemory,
}

/// How many ticks that were left out at once are traced one by one; all are counted.
const SKIPPED_TRACED: u64 = 64;

impl Lanes {
    /// Makes all lanes, with their threads if there is a runtime for these.
    ///
    /// # Errors
    /// If a lane has no threads: which lane, and why.
    pub(crate) fn new(
        plan: &Plan,
        runtime: Option<&Handle>,
    ) -> Result<Lanes, (usize, DispatcherError)> {
        let new = |place| LaneState::new(plan, place, runtime).map_err(|error| (place, error));
        let by_lane: Result<Vec<LaneState>, _> = (0..plan.graph.lanes.len()).map(new).collect();
        Ok(Lanes {
            by_lane: by_lane?,
            times: vec![0; plan.graph.lanes.len()],
            ..Lanes::default()
        })
    }

    /// Returns lanes for a part of the run that goes on beside it.
    pub(crate) fn beside(&self) -> Lanes {
        Lanes {
            by_lane: self.by_lane.iter().map(LaneState::beside).collect(),
            times: self.times.clone(),
            is_real: self.is_real,
            has_turns: self.has_turns,
            zero: self.zero,
            driver: None,
            memory: RunMemory::default(),
        }
    }

    /// Takes in what such lanes have counted.
    pub(crate) fn merge(&mut self, beside: &Lanes) {
        for (lane, beside) in self.by_lane.iter_mut().zip(&beside.by_lane) {
            lane.add_counts(beside);
        }
    }

    /// Returns all lanes, in the order of the graph.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &LaneState> {
        self.by_lane.iter()
    }

    #[inline]
    pub(crate) fn lane(&self, place: usize) -> &LaneState {
        &self.by_lane[place]
    }

    #[inline]
    pub(crate) fn lane_mut(&mut self, place: usize) -> &mut LaneState {
        &mut self.by_lane[place]
    }

    /// Returns the time of a lane in this epoch.
    #[inline]
    pub(crate) fn time(&self, place: usize) -> u64 {
        self.times[place]
    }

    /// Returns the times of all lanes in this epoch.
    #[inline]
    pub(crate) fn times(&self) -> &[u64] {
        &self.times
    }

    /// Whether time is real.
    pub(crate) fn is_real(&self) -> bool {
        self.is_real
    }

    /// Whether there are epochs in which not all lanes are due.
    #[inline]
    pub(crate) fn has_turns(&self) -> bool {
        self.has_turns
    }

    /// Returns the time since the run began, on the real clock.
    pub(crate) fn elapsed(&self) -> u64 {
        clock::now().saturating_sub(self.zero)
    }

    /// Lets time count from now on, if it is real. What comes from outside comes in real time,
    /// unless a rate is simulated. `recorded`: whether time was real in the run that is replayed.
    pub(crate) fn begin_clock(&mut self, now: u64, has_doors: bool, recorded: Option<bool>) {
        let follows = self.iter().any(LaneState::follows_clock);
        let simulates = |l: &LaneState| l.has_rate() && !l.follows_clock();
        let is_real = follows || (has_doors && !self.iter().any(simulates));
        if is_real {
            self.zero = now;
        }
        self.is_real = recorded.unwrap_or(is_real);
        let steps = |l: &LaneState| l.kind() == LaneKind::ManualStep;
        self.has_turns = self.is_real || self.iter().any(steps);
    }

    // Their threads.

    /// Returns the threads that a component runs on, by its lane and their place there.
    #[inline]
    pub(crate) fn pool(&self, place: usize, pool: Option<usize>) -> Option<&Pool> {
        self.by_lane[place].pools().get(pool?)
    }

    /// Says that the run has a thread of its own, and what that has.
    pub(crate) fn set_driver(&mut self, attributes: Attributes) {
        self.driver = Some(attributes);
    }

    /// Whether the run has a thread of its own.
    pub(crate) fn has_driver(&self) -> bool {
        self.driver.is_some()
    }

    /// Keeps the memory of the process locked as long as the lanes are there.
    pub(crate) fn set_memory(&mut self, memory: RunMemory) {
        self.memory = memory;
    }

    /// Returns what the system gave to the threads.
    pub(crate) fn grants(&self, graph: &Graph) -> Vec<LaneGrant> {
        let grants = Grants {
            graph,
            driver: self.driver.as_ref(),
            memory: &self.memory,
        };
        let lanes = self.by_lane.iter().enumerate();
        let grants = lanes.filter_map(|(place, lane)| grants.of(place, lane.pools()));
        grants.collect()
    }

    // Steps.

    /// Takes steps that were asked for, by lane, and says which of the lanes that wait for steps
    /// are due in this epoch.
    pub(crate) fn take_steps(&mut self, steps: BTreeMap<usize, u64>) {
        for (place, steps) in steps {
            self.by_lane[place].add_steps(steps);
        }
        self.by_lane.iter_mut().for_each(LaneState::take_step);
    }

    /// Whether lanes run only when they are stepped.
    pub(crate) fn wait_for_steps(&self) -> bool {
        self.iter().any(LaneState::waits_for_steps)
    }

    /// Whether a step was asked for that has not been done.
    pub(crate) fn have_steps(&self) -> bool {
        self.iter().any(LaneState::has_steps)
    }

    // Ticks.

    /// Begins a tick of a lane that is due. Simulated time goes on, to the nearest timer or window
    /// if the lane has no rate.
    pub(crate) fn begin_tick(
        &mut self,
        place: usize,
        nearest: Option<u64>,
        epoch: u64,
        sinks: &mut Sinks,
    ) {
        let lane = &mut self.by_lane[place];
        if !self.is_real {
            self.times[place] = lane.simulate_tick(self.times[place], nearest);
        }
        lane.begin_tick();
        if lane.kind() == LaneKind::FixedRate && sinks.trace.is_on() {
            report_tick(
                sinks,
                epoch,
                place,
                TraceName::FixedRateTickBegin,
                clock::now(),
                0,
            );
        }
    }

    /// Sets the clocks to the real time, and says which lanes are due. `begun`: when the run began
    /// to wait.
    pub(crate) fn look_at_clock(&mut self, begun: u64) {
        let now = self.elapsed();
        self.times.fill(now);
        for lane in &mut self.by_lane {
            lane.look_at_clock(now, begun);
        }
    }

    /// Returns the next tick of a lane that follows the real clock.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        self.iter().filter_map(LaneState::next_tick).min()
    }

    /// Ends an epoch for the lanes that have a rate. In a replay the recording says when ticks are.
    pub(crate) fn end_ticks(
        &mut self,
        (start, end): (u64, u64),
        epoch: u64,
        is_replay: bool,
        plan: &Plan,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        for place in 0..self.by_lane.len() {
            let elapsed = match self.by_lane[place].kind() {
                LaneKind::FixedRate if self.by_lane[place].is_due() => self.elapsed(),
                _ => continue,
            };
            let lane = &mut self.by_lane[place];
            let (used, over_budget) = lane.tick_used();
            let ended = match is_replay {
                true => None,
                false => lane.end_cadence(elapsed),
            };
            let over = over_budget || ended.as_ref().is_some_and(|ended| ended.late);
            lane.count_overrun(over);
            if sinks.trace.is_on() {
                let mut trace = |name, at, duration| {
                    report_tick(sinks, epoch, place, name, at, duration);
                };
                trace(TraceName::FixedRateTick, start, end - start);
                trace(TraceName::FixedRateTickEnd, end, 0);
                if over {
                    trace(TraceName::FixedRateOverrun, end, used);
                }
                let skipped = ended.as_ref().map_or(0, |ended| ended.skipped);
                for _ in 0..skipped.min(SKIPPED_TRACED) {
                    trace(TraceName::FixedRateSkippedTick, end, 0);
                }
            }
            if ended.is_some_and(|ended| ended.missed) {
                lane.count_deadline_miss();
                miss_deadline(place, end, epoch, plan, sinks)?;
            }
        }
        Ok(())
    }

    // Recordings.

    /// Returns the clocks of the lanes, and which are due, for a recording.
    pub(crate) fn turns(&self, names: &Names) -> Vec<LaneTurn> {
        if !self.has_turns {
            return Vec::new();
        }
        let turn = |((lane, name), &now): ((&LaneState, &std::sync::Arc<str>), &u64)| LaneTurn {
            lane: name.clone(),
            now,
            is_due: lane.is_due(),
        };
        let lanes = self.by_lane.iter().zip(&names.lanes).zip(&self.times);
        lanes.map(turn).collect()
    }

    /// In a replay: sets the clocks of the lanes, and which are due. The recording was fitted to
    /// this graph: it has its lanes, in its order.
    pub(crate) fn set_turns(&mut self, turns: &[LaneTurn]) {
        let lanes = self.by_lane.iter_mut().zip(&mut self.times);
        for ((lane, time), turn) in lanes.zip(turns) {
            *time = turn.now;
            lane.set_due(turn.is_due);
        }
    }
}

/// A tick has ended after its deadline: `on_deadline_miss` says what that does.
fn miss_deadline(
    place: usize,
    at: u64,
    epoch: u64,
    plan: &Plan,
    sinks: &mut Sinks,
) -> Result<(), Halt> {
    report_tick(sinks, epoch, place, TraceName::FixedRateDeadlineMiss, at, 0);
    let lane = &plan.graph.lanes[place];
    sinks.health.raise(
        HealthKind::LaneDeadlineMiss,
        HealthSubject::Lane(place as u32),
    );
    if lane.on_deadline_miss == OnDeadlineMiss::Stop {
        let message = format!(
            "a tick of lane {} ended after its deadline: give it more time (deadline_ms, period_ms), or choose another on_deadline_miss",
            lane.id
        );
        return Err(sinks.halt("deadline", ErrorCode::Runtime, None, message));
    }
    Ok(())
}

fn report_tick(
    sinks: &mut Sinks,
    epoch: u64,
    place: usize,
    name: TraceName,
    at: u64,
    duration: u64,
) {
    sinks.lane_tick(&LaneTick {
        epoch,
        lane: place,
        name,
        at,
        duration,
    });
}

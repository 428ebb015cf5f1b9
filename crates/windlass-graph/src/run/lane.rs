//! Lanes in a run: their clocks, their threads, and what they count.
//!
//! Time is simulated unless a lane follows the real clock (`cadence.rs`): each epoch is a tick of every lane, on the
//! lane's own clock. The clock of a lane with a rate goes on by its period; that of any other goes to the nearest
//! timer or window of its components.

use std::sync::Arc;
use std::thread::ThreadId;

use windlass_core::sync::Mutex;
use windlass_core::task::Class;
use windlass_runtime::Handle;
use windlass_runtime::dispatch::{Attributes, Dispatcher, DispatcherError, Scheduling};

use super::cadence::Cadence;
use super::counts::LaneCounts;
use super::facts::nanos;
use super::machine::Machine;
use super::trace::{Recorded, TraceName};
use super::trigger::follows_time;
use crate::compile::Plan;
use crate::model::{Lane, LaneKind, Priority};

/// A lane in a run.
#[derive(Debug, Clone)]
pub(crate) struct LaneState {
    /// Nanoseconds since the run began, on this lane's clock.
    pub(crate) now: u64,
    has_ticked: bool,
    kind: LaneKind,
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
    pub(crate) pool: Option<Pool>,
    pub(crate) counts: LaneCounts,
    /// What its invocations took in this epoch.
    pub(crate) tick_used: u64,
}

/// The threads of a lane.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) width: usize,
    pub(crate) workers: Arc<Workers>,
}

/// Who works for a lane.
#[derive(Debug, Default)]
pub(crate) struct Workers(Mutex<Busy>);

#[derive(Debug, Default)]
struct Busy {
    /// In the order in which they first did something.
    threads: Vec<ThreadId>,
    active: u64,
    most_active: u64,
}

impl Workers {
    /// An invocation begins on this thread; gives the thread's number.
    pub(crate) fn begin(&self) -> u32 {
        let me = std::thread::current().id();
        let mut busy = self.0.lock();
        busy.active += 1;
        busy.most_active = busy.most_active.max(busy.active);
        let place = busy.threads.iter().position(|&thread| thread == me);
        let place = place.unwrap_or_else(|| {
            busy.threads.push(me);
            busy.threads.len() - 1
        });
        place as u32
    }

    /// An invocation has ended.
    pub(crate) fn end(&self) {
        self.0.lock().active -= 1;
    }

    /// How many there were at once.
    pub(crate) fn most_active(&self) -> u64 {
        self.0.lock().most_active
    }
}

impl LaneState {
    pub(crate) fn new(
        plan: &Plan,
        place: usize,
        runtime: &Handle,
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
        let pool = match lane.kind {
            LaneKind::ThreadPool => Some(Pool::new(lane, runtime)?),
            _ => None,
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
                workers: pool.as_ref().map_or(0, |pool| pool.width as u64),
                ..LaneCounts::default()
            },
            pool,
            tick_used: 0,
        })
    }

    /// Whether its invocations run in the run's own task.
    #[inline]
    pub(crate) fn is_inline(&self) -> bool {
        self.pool.is_none()
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
            tick_used: 0,
            ..self.clone()
        }
    }
}

impl Pool {
    fn new(lane: &Lane, runtime: &Handle) -> Result<Pool, DispatcherError> {
        let name = lane.thread_name.clone();
        let mut builder = Dispatcher::builder(lane.width())
            .name(name.unwrap_or_else(|| format!("lane-{}", lane.id)));
        if !lane.cpu_affinity.is_empty() {
            builder = builder.affinity(lane.cpu_affinity.iter().copied());
        }
        if lane.nice_priority != 0 {
            builder = builder.nice(lane.nice_priority);
        }
        if let Some(scheduling) = scheduling(lane) {
            builder = builder.scheduling(scheduling);
        }
        let class = lane.priority.as_deref().and_then(Priority::named);
        let class = match class.unwrap_or_default() {
            Priority::High => Class::High,
            Priority::Normal => Class::Normal,
            Priority::Low => Class::Low,
            Priority::Background => Class::Background,
        };
        Ok(Pool {
            dispatcher: builder.build_in(runtime)?.with_class(class),
            width: lane.width(),
            workers: Arc::default(),
        })
    }

    /// What the system gave to its threads, in words.
    pub(crate) fn grants(&self) -> Vec<String> {
        let attributes = self.dispatcher.snapshot().attributes;
        attributes.iter().filter_map(grant).collect()
    }
}

/// What a thread has that not all have.
fn grant(got: &Attributes) -> Option<String> {
    let affinity = got.affinity.as_ref().map(|cpus| format!("cpus {cpus:?}"));
    let nice = got.nice.map(|nice| format!("nice {nice}"));
    let policy = got.scheduling.map(|policy| format!("{policy:?}"));
    let parts: Vec<String> = affinity.into_iter().chain(nice).chain(policy).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn scheduling(lane: &Lane) -> Option<Scheduling> {
    let policy = lane.rt_policy.as_deref()?.to_ascii_lowercase();
    let priority = u32::try_from(lane.rt_priority).unwrap_or(0);
    match policy.trim_start_matches("sched_") {
        "fifo" => Some(Scheduling::Fifo { priority }),
        "rr" => Some(Scheduling::RoundRobin { priority }),
        _ => None,
    }
}

/// How many ticks that were left out at once are traced one by one; all are counted.
const SKIPPED_TRACED: u64 = 64;

impl Machine {
    /// A tick of every lane that is due.
    pub(crate) fn tick_lanes(&mut self) {
        for place in 0..self.lanes.len() {
            if !self.lanes[place].is_due {
                continue;
            }
            if !self.on_clock {
                let nearest = self.nearest_wake(place);
                self.lanes[place].simulate_tick(nearest);
            }
            let lane = &mut self.lanes[place];
            lane.counts.ticks += 1;
            lane.tick_used = 0;
            if lane.kind == LaneKind::FixedRate && self.trace.on {
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
    pub(crate) fn end_ticks(&mut self, start: u64, end: u64) {
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
            if self.trace.on {
                self.note_tick(place, TraceName::FixedRateTick, start, end - start);
                self.note_tick(place, TraceName::FixedRateTickEnd, end, 0);
                if over {
                    self.note_tick(place, TraceName::FixedRateOverrun, end, used);
                }
                for _ in 0..ended.map_or(0, |ended| ended.skipped.min(SKIPPED_TRACED)) {
                    self.note_tick(place, TraceName::FixedRateSkippedTick, end, 0);
                }
            }
        }
    }

    fn note_tick(&mut self, place: usize, name: TraceName, at: u64, duration: u64) {
        let event = Recorded {
            lane: place as u32,
            duration,
            ..Recorded::new(name, self.env.epoch, at)
        };
        self.trace.push(event);
    }
}

//! The machine of a run: everything that it owns, and how an epoch goes.
//!
//! One task owns the machine and does everything in order. Only the calls of components on `thread_pool` lanes
//! happen elsewhere: they get what they need by value, and bring back what they ask for. A composite loop that
//! runs beside the epochs (`async_task`) gets a machine of its own with its members in it (`exec/async_loop.rs`).
//!
//! An epoch: the store and new configurations are committed (`epoch/start.rs`); what was deferred becomes visible;
//! each region runs (`exec/`, `state/loops.rs`) and what it published is committed (`epoch/commit.rs`).

use std::sync::Arc;

use windlass_core::sync::{CoarseClock, clock};
use windlass_runtime::dispatch::Attributes;

use crate::component::{Component, Door, Env, Outbox, Received, Reentrant, Staged};
use crate::record::Script;
use crate::run::clock::RunClock;
use crate::run::exec::async_loop::AsyncLoop;
use crate::run::exec::overlap::Overlap;
use crate::run::exec::threads::Memory;
use crate::run::exec::watch::{CallDeadline, Watch};
use crate::run::options::RunOptions;
use crate::run::outside::control::Inbox;
use crate::run::outside::tap::Tapping;
use crate::run::result::ErrorCode;
use crate::run::sinks::Sinks;
use crate::run::sinks::counts::{
    AsyncCounts, ComponentCounts, LoopCounts, PublicationCounts, RunCounts,
};
use crate::run::sinks::health::HealthSubject;
use crate::run::sinks::trace::{Recorded, TraceName};
use crate::run::state::channel::Channel;
use crate::run::state::channels::Channels;
use crate::run::state::lane::LaneState;
use crate::run::state::loops::LoopState;
use crate::run::state::store::Store;
use crate::run::state::tables::{NOT_HERE, Tables};
use crate::run::state::trigger::{Ready, Trigger};
use windlass_plan::compile::{Plan, Region};
use windlass_plan::model::Config;

/// Everything that a run owns.
pub(crate) struct Machine {
    pub(crate) plan: Arc<Plan>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) env: Arc<Env>,
    pub(crate) members: Vec<Member>,
    /// The components that have a door to the world outside.
    pub(crate) doors: Vec<usize>,
    pub(crate) channels: Channels,
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) lanes: Vec<LaneState>,
    pub(crate) loops: Vec<LoopState>,
    pub(crate) async_loops: Vec<AsyncLoop>,
    pub(crate) taps: Vec<Tapping>,
    pub(crate) inbox: Arc<Inbox>,
    /// The configuration of each component, as it is now.
    pub(crate) configs: Vec<Config>,
    pub(crate) sinks: Sinks,
    pub(crate) totals: Totals,
    /// The components that were ended by force, because the run had to stop.
    pub(crate) forced: Vec<usize>,
    /// What the thread that drives the run was found to have, if that is its own.
    pub(crate) driver: Option<Attributes>,
    pub(crate) memory: Memory,
    /// Who ends invocations that take too long, if some may not.
    pub(crate) watch: Option<Arc<Watch>>,
    pub(crate) recording: RecordState,
    pub(crate) clock: RunClock,
    pub(crate) spare: Spare,
}

/// How far a run is.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Invocations so far.
    pub(crate) ticks: u64,
    /// Invocations of sources that did nothing, because an edge had no room.
    pub(crate) held_ticks: u64,
    /// Invocations of sources that come to an end in which they published something.
    pub(crate) source_publishes: u64,
    /// The number of the latest invocation.
    pub(crate) transaction: u64,
    /// How many loops were sent off.
    pub(crate) launched: u64,
}

/// What a recording decides in a replay, and what the next line of a recording will say.
#[derive(Debug, Default)]
pub(crate) struct RecordState {
    /// What a recording has decided.
    pub(crate) script: Option<Arc<Script>>,
    /// In a replay in real time: the loops that come back in this epoch.
    pub(crate) joins: Option<Vec<String>>,
    /// The loops that came back in this epoch.
    pub(crate) joined: Vec<String>,
    /// New configurations of this epoch.
    pub(crate) reconfigured: Vec<Vec<(String, Config)>>,
}

/// Buffers of invocations, to be used again. A buffer is not here while it is in use.
#[derive(Default)]
pub(crate) struct Spare {
    pub(crate) ready: Option<Box<Ready>>,
    pub(crate) outbox: Option<Box<Outbox>>,
    pub(crate) inputs: Vec<Received>,
}

/// What a run counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) components: Vec<ComponentCounts>,
    /// Invocations for which no trigger was asked, by component.
    pub(crate) plain_ready: Vec<u64>,
    pub(crate) publication: PublicationCounts,
    /// By edge.
    pub(crate) asynchronous: Vec<AsyncCounts>,
    pub(crate) loops: Vec<LoopCounts>,
    pub(crate) run: RunCounts,
}

/// A component in a run.
#[derive(Default)]
pub(crate) struct Member {
    /// Not here while it is called elsewhere.
    pub(crate) component: Option<Box<dyn Component>>,
    /// What may be called several times at once.
    pub(crate) reentrant: Option<Arc<dyn Reentrant>>,
    /// Whether its type says that an invocation can be ended from outside.
    pub(crate) preemptible: bool,
    /// Whether its type says that it is a source that comes to an end.
    pub(crate) is_finite_source: bool,
    /// What ends an invocation that takes too long, if somebody watches.
    pub(crate) deadline: Option<CallDeadline>,
    /// Whether it was activated and has not been deactivated.
    pub(crate) active: bool,
    /// Whether it has said that nothing more will come of it.
    pub(crate) finished: bool,
    /// How it hears of the world outside.
    pub(crate) door: Option<Arc<Door>>,
    /// Whether it has one, or had one when it was recorded.
    pub(crate) has_door: bool,
    /// Something has come from there.
    pub(crate) woken: bool,
    /// It does not want to be invoked for now.
    pub(crate) held: bool,
}

/// The run has to end; why is in its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Halt;

impl Machine {
    pub(crate) fn new(
        plan: Arc<Plan>,
        members: Vec<Member>,
        lanes: Vec<LaneState>,
        inbox: Arc<Inbox>,
        overlap: Overlap,
        options: &RunOptions,
        tracing: bool,
    ) -> Machine {
        let graph = &plan.graph;
        let tables = Tables::new(
            &plan,
            overlap,
            |c| members[c].preemptible,
            |c| members[c].is_finite_source,
        );
        let channels = graph.edges.iter().enumerate();
        let channels = channels.map(|(e, edge)| {
            let channel = Channel::new(e, plan.edges[e].to_port, edge);
            channel.holding_off(tables.edges[e].holds_off)
        });
        let channels: Vec<Channel> = channels.collect();
        let store = match &options.restore {
            Some(snapshot) => snapshot.store.clone(),
            None => Store::default(),
        };
        Machine {
            env: Arc::new(Env {
                plan: plan.clone(),
                store: Arc::new(store),
                stop: options.stop.clone(),
                under_way: inbox.under_way.clone(),
                epoch: 0,
                tracing,
                script: None,
            }),
            tables: Arc::new(tables),
            members,
            doors: Vec::new(),
            channels: Channels::new(channels, lanes.iter().map(|lane| lane.now).collect()),
            triggers: (0..graph.components.len())
                .map(|c| Trigger::new(&plan, c))
                .collect(),
            lanes,
            loops: graph.loops.iter().map(|_| LoopState::default()).collect(),
            async_loops: Vec::new(),
            taps: Vec::new(),
            inbox,
            configs: graph.components.iter().map(|c| c.config.clone()).collect(),
            sinks: Sinks::new(&plan, options, tracing),
            totals: Totals::default(),
            forced: Vec::new(),
            driver: None,
            memory: Memory::default(),
            watch: None,
            recording: RecordState::default(),
            clock: RunClock::new(),
            spare: Spare::default(),
            plan,
        }
    }

    /// One epoch; gives whether anything ran. A source that waits for room does not count, unless its reader may not
    /// have had its turn: if nothing else runs either, nothing will ever make room.
    pub(crate) async fn epoch(&mut self) -> Result<bool, Halt> {
        let ran = |machine: &Machine| match machine.clock.has_turns {
            true => machine.totals.ticks,
            false => machine.totals.ticks - machine.totals.held_ticks,
        };
        let before = ran(self);
        let start = self.begin_iteration();
        let done = self.regions().await;
        let ended = self.end_iteration(start);
        done.and(ended)?;
        Ok(ran(self) > before)
    }

    async fn regions(&mut self) -> Result<(), Halt> {
        self.start_epoch().await?;
        match self.tables.overlap.is_possible {
            true => self.regions_overlapping().await?,
            false => {
                let plan = self.plan.clone();
                let tables = self.tables.clone();
                for &place in &plan.order {
                    // Most are run here, without a future to wait for.
                    let component = tables.here[place];
                    if component == NOT_HERE {
                        self.region_in_turn(&plan, place).await?;
                    } else if !self.skips(&plan.regions[place]) {
                        self.step_inline(component as usize, 0)?;
                    }
                }
            }
        }
        self.feed_taps();
        self.trace_health();
        Ok(())
    }

    /// Runs a region in its turn: everything before it is committed.
    pub(crate) async fn region_in_turn(&mut self, plan: &Plan, place: usize) -> Result<(), Halt> {
        let region = &plan.regions[place];
        if self.skips(region) {
            return Ok(());
        }
        match region.composite_loop {
            None => {
                let component = region.components[0];
                match self.tables.components[component].pool {
                    None => self.step_inline(component, 0)?,
                    Some(_) => self.step_on_pool(component, 0).await?,
                };
                Ok(())
            }
            Some(composite) => self.run_loop(place, composite).await,
        }
    }

    /// Whether none of its lanes is due in this epoch.
    pub(crate) fn skips(&self, region: &Region) -> bool {
        self.clock.has_turns && !self.is_due(region)
    }

    /// Whether a lane of one of its members is due.
    fn is_due(&self, region: &Region) -> bool {
        let mut lanes = region.components.iter().map(|&c| self.plan.nodes[c].lane);
        lanes.any(|lane| self.lanes[lane].is_due)
    }

    /// Runs whatever a component's trigger makes of what has come; gives how many invocations that were.
    pub(crate) async fn step(&mut self, component: usize, iteration: u64) -> Result<u64, Halt> {
        match self.tables.components[component].pool {
            None => self.step_inline(component, iteration),
            Some(_) => self.step_on_pool(component, iteration).await,
        }
    }

    fn begin_iteration(&mut self) -> u64 {
        let epoch = self.env.epoch + 1;
        self.set_env(|env| env.epoch = epoch);
        self.sinks.epoch = epoch;
        self.sinks.health.epoch = epoch;
        self.clock.near = CoarseClock::look();
        let start = self.clock.near.at();
        self.clock.latest = start;
        if self.sinks.trace.on {
            self.note(TraceName::SchedulerIterationBegin, start);
        }
        start
    }

    fn end_iteration(&mut self, start: u64) -> Result<(), Halt> {
        let end = clock::now();
        if let Some(times) = &mut self.sinks.epoch_times
            && times.len() < self.sinks.order_capacity
        {
            times.push(end - start);
        }
        self.inbox.set_progress(self.env.epoch, self.totals.ticks);
        let ended = self.end_ticks(start, end);
        if self.sinks.trace.on {
            let mut span = Recorded::new(TraceName::SchedulerIteration, self.env.epoch, start);
            span.duration = end - start;
            self.sinks.trace.push(span);
            self.note(TraceName::SchedulerIterationEnd, end);
        }
        ended
    }

    /// Changes what invocations see; those that are still out keep what they have.
    pub(crate) fn set_env(&mut self, change: impl FnOnce(&mut Env)) {
        match Arc::get_mut(&mut self.env) {
            Some(env) => change(env),
            None => {
                let old = &self.env;
                let mut env = Env {
                    plan: old.plan.clone(),
                    store: old.store.clone(),
                    stop: old.stop.clone(),
                    under_way: old.under_way.clone(),
                    epoch: old.epoch,
                    tracing: old.tracing,
                    script: old.script.clone(),
                };
                change(&mut env);
                self.env = Arc::new(env);
            }
        }
    }

    /// Records an event that is of no component.
    pub(crate) fn note(&mut self, name: TraceName, at: u64) {
        self.sinks
            .trace
            .push(Recorded::new(name, self.env.epoch, at));
    }

    /// An event of a component.
    pub(crate) fn recorded(&self, name: TraceName, component: usize, at: u64) -> Recorded {
        self.sinks.event(&self.tables, name, component, at)
    }

    /// Commits what a component has published; the list is empty afterwards.
    #[inline]
    pub(crate) fn commit(&mut self, staged: &mut Vec<Staged>) -> Result<(), Halt> {
        self.channels.commit(staged, &self.tables, &mut self.sinks)
    }

    /// Records the health events that have come.
    pub(crate) fn trace_health(&mut self) {
        if !self.sinks.health.has_fresh() {
            return;
        }
        let at = clock::now();
        for (kind, place) in self.sinks.health.take_fresh() {
            let mut event = match place {
                HealthSubject::Channel(edge) => {
                    let to = self.plan.edges[edge as usize].to;
                    let mut event = self.recorded(TraceName::HealthEvent, to, at);
                    event.channel = edge;
                    event
                }
                HealthSubject::Component(component) => {
                    self.recorded(TraceName::HealthEvent, component as usize, at)
                }
                HealthSubject::Lane(lane) => Recorded {
                    lane,
                    ..Recorded::new(TraceName::HealthEvent, self.env.epoch, at)
                },
            };
            event.attributes.push(("kind", kind.name().into()));
            self.sinks.trace.push(event);
        }
    }

    /// Remembers an error that ends the run.
    pub(crate) fn halt(
        &mut self,
        phase: &str,
        code: ErrorCode,
        component: Option<usize>,
        message: String,
    ) -> Halt {
        self.sinks.halt(&self.plan, phase, code, component, message)
    }

    pub(crate) fn add_error(
        &mut self,
        phase: &str,
        code: ErrorCode,
        component: Option<usize>,
        message: String,
        fatal: bool,
    ) {
        self.sinks
            .add_error(&self.plan, phase, code, component, message, fatal);
    }
}

impl Counts {
    pub(crate) fn of(plan: &Plan) -> Counts {
        Counts {
            components: vec![ComponentCounts::default(); plan.graph.components.len()],
            plain_ready: vec![0; plan.graph.components.len()],
            asynchronous: vec![AsyncCounts::default(); plan.graph.edges.len()],
            loops: vec![LoopCounts::default(); plan.graph.loops.len()],
            ..Counts::default()
        }
    }
}

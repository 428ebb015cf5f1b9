//! A graph that is ready to run, as often as one likes.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use windlass_core::sync::clock;
use windlass_core::task::{JoinError, JoinHandle};
use windlass_runtime::Handle;
use windlass_runtime::task::yield_now;
use windlass_sync::CancellationToken;
use windlass_sync::channel::oneshot;

use crate::component::{Catalog, Failure, Registry};
use crate::observe::Level;
use crate::record::{Names, Playback, Recording, Replayed, Script, Tape, TapeKind};
use crate::run::exec::invoke::outcome;
use crate::run::exec::overlap::Overlap;
use crate::run::exec::threads::{Grants, Memory, driver_lane, driver_thread, refused_strictly};
use crate::run::frontend::{Entered, GraphFrontEnd};
use crate::run::machine::{Halt, Machine, Member};
use crate::run::options::RunOptions;
use crate::run::outside::control::{Closing, Control, Inbox, manual_lane};
use crate::run::result::{ErrorCode, RunResult, StopReason};
use crate::run::sinks::recorder::replay_options;
use crate::run::sinks::trace::Trace;
use crate::run::state::lane::LaneState;
use crate::run::state::tables::nanos;
use windlass_plan::compile::{CompileError, Plan, compile};
use windlass_plan::model::{BoundaryRole, Graph};

/// A compiled graph with the types of its components. Each run makes components of its own.
///
/// ```
/// use windlass_graph::component::{Descriptor, Registry};
/// use windlass_graph::model::{Component, Graph, Lane, LaneKind};
/// use windlass_graph::{Prepared, RunOptions};
/// use windlass_runtime::Runtime;
///
/// let mut graph = Graph::new("one");
/// graph.lanes.push(Lane::new("main", LaneKind::EventLoop));
/// graph.components.push(Component::new("hello", "mine.Hello", "main"));
/// let mut registry = Registry::new();
/// registry.function("mine.Hello", Descriptor::new(), |_| Ok(()));
///
/// let prepared = Prepared::new(graph, registry)?;
/// let result = Runtime::new()?.block_on(prepared.run(RunOptions::steps(3)));
/// assert_eq!(result.order, ["hello", "hello", "hello"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Prepared {
    plan: Arc<Plan>,
    registry: Registry,
}

/// A run that has not begun yet.
#[derive(Debug)]
pub struct Run {
    prepared: Prepared,
    control: Control,
    options: RunOptions,
    closing: Closing,
    /// What is played back.
    recording: Option<Arc<Recording>>,
}

/// A run that goes on in a task of its own: its end can be awaited.
#[derive(Debug)]
pub struct Running {
    control: Control,
    task: JoinHandle<RunResult>,
}

impl Prepared {
    /// Compiles a graph. Whether it makes sense is for [`check`](windlass_plan::check) to say.
    pub fn new(graph: Graph, registry: Registry) -> Result<Prepared, CompileError> {
        Ok(Prepared {
            plan: Arc::new(compile(graph)?),
            registry,
        })
    }

    /// What it was compiled to.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs it, and waits for its end; see [`Run::run`].
    pub async fn run(&self, options: RunOptions) -> RunResult {
        self.begin(options).run().await
    }

    /// A run that has not begun yet, for those who want its control first.
    pub fn begin(&self, options: RunOptions) -> Run {
        let inbox = Arc::new(Inbox::of(&self.plan));
        Run {
            closing: Closing {
                inbox: inbox.clone(),
                observer: options.observer.clone(),
            },
            control: Control {
                plan: self.plan.clone(),
                inbox,
                stop: options.stop.clone(),
            },
            prepared: self.clone(),
            options,
            recording: None,
        }
    }

    /// Runs it again as it was recorded: what came from outside comes out of the recording, and what it does is
    /// compared with it. Of the options those count that say what is kept: `trace`, `snapshot`, the capacities.
    ///
    /// The graph may be another one than was recorded: then this shows what the change does.
    pub async fn replay(&self, recording: &Recording, options: RunOptions) -> Replayed {
        let recording = recording.fitted(&self.plan.graph);
        let header = recording.header();
        let options = replay_options(options, header.restored.clone(), header.reset);
        let recorded_hash = recording.content.end.as_ref().map(|end| end.hash.clone());
        let mut run = self.begin(options);
        run.recording = Some(Arc::new(recording));
        let mut result = run.run().await;
        let (difference, hash) = match result.tape_end.take() {
            Some(end) => (end.difference, end.hash),
            None => (None, String::new()),
        };
        Replayed {
            result,
            difference,
            hash,
            recorded_hash,
        }
    }

    /// The boundary role of a component: as written, or else its type's.
    fn role(&self, component: usize) -> BoundaryRole {
        let component = &self.plan.graph.components[component];
        let typical = || {
            Some(
                self.registry
                    .descriptor(&component.type_name)?
                    .boundary_role,
            )
        };
        component.boundary.role.or_else(typical).unwrap_or_default()
    }

    /// Everything that a run owns, or what to say if a part of it cannot be had.
    fn machine(
        &self,
        runtime: &Handle,
        options: &RunOptions,
        inbox: Arc<Inbox>,
        recording: Option<&Recording>,
    ) -> Result<Machine, Box<RunResult>> {
        let graph = &self.plan.graph;
        let mut members = Vec::with_capacity(graph.components.len());
        let mut missing = Vec::new();
        for (place, component) in graph.components.iter().enumerate() {
            let name = &component.type_name;
            let descriptor = self.registry.descriptor(name);
            let is_finite_source = descriptor.is_some_and(|descriptor| descriptor.finite_source);
            if let Some(played) = recording.and_then(|r| r.played_back(&component.id)) {
                members.push(Member {
                    component: Some(Box::new(played)),
                    is_finite_source,
                    ..Member::default()
                });
                continue;
            }
            let made = outcome(catch_unwind(AssertUnwindSafe(|| {
                self.registry.make(name).ok_or_else(|| {
                    let missing = "there is no component type";
                    Failure::new(format!("{missing} {name}: register it, or run with stubs"))
                })
            })));
            let made = match made {
                Ok(made) => Some(made),
                Err(message) => {
                    missing.push((place, message));
                    None
                }
            };
            members.push(Member {
                component: made,
                is_finite_source,
                preemptible: descriptor.is_some_and(|descriptor| descriptor.preemptible),
                ..Member::default()
            });
        }
        let lanes: Result<Vec<LaneState>, _> = (0..graph.lanes.len())
            .map(|lane| {
                // What is played back needs no threads: everything has been decided.
                let runtime = recording.is_none().then_some(runtime);
                LaneState::new(&self.plan, lane, runtime).map_err(|e| (lane, e))
            })
            .collect();
        let (lanes, failed) = match lanes {
            Ok(lanes) => (lanes, None),
            Err(failed) => (Vec::new(), Some(failed)),
        };
        let mut overlap = Overlap::of(&self.plan, |component| self.role(component));
        overlap.is_possible &= options.overlap && recording.is_none();
        let plan = self.plan.clone();
        let observed = options.observer.as_ref();
        let tracing = options.trace
            || options.record.is_some()
            || recording.is_some()
            || observed.is_some_and(|observer| observer.wants(Level::Debug));
        let mut machine = Machine::new(plan, members, lanes, inbox, overlap, options, tracing);
        if let Some(recording) = recording {
            machine.sinks.trace.hashes = true;
            let script = Arc::new(Script::new(recording, &self.plan.graph));
            machine.recording.script = Some(script.clone());
            machine.set_env(|env| env.script = Some(script));
            let playback = Box::new(Playback::new(recording));
            let names = Arc::new(Names::of(&self.plan.graph));
            machine.sinks.tape = Some(Tape::new(TapeKind::Replay(playback), names));
        }
        if let Some((lane, error)) = failed {
            let message = format!("lane {} has no threads: {error}", graph.lanes[lane].id);
            machine.halt("start", ErrorCode::Runtime, None, message);
        }
        for (component, message) in missing {
            machine.halt("construct", ErrorCode::Validation, Some(component), message);
        }
        if !machine.sinks.errors.is_empty() {
            return Err(Box::new(report(machine, StopReason::Error, None)));
        }
        Ok(machine)
    }
}

impl Run {
    /// Asks things of it.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Runs it here, and waits for its end. Components on `event_loop` and `fixed_rate` lanes run in the task
    /// that awaits this, those on `thread_pool` lanes on threads of their own.
    ///
    /// If the future is dropped, its components are dropped as they are, without being deactivated. A run on the real
    /// clock, which has a thread of its own, comes to its end there instead, as if it had been asked to stop.
    pub async fn run(self) -> RunResult {
        let Run {
            prepared,
            control,
            mut options,
            closing: _closing,
            recording,
        } = self;
        // Stopped by whoever holds the token, and by the runtime's shutdown.
        options.stop = options.stop.child();
        let runtime = Handle::current_or_default();
        let under_way = &control.inbox.under_way;
        let entered =
            GraphFrontEnd::enter(&runtime, &prepared.plan, under_way, options.stop.clone());
        let mut machine =
            match prepared.machine(&runtime, &options, control.inbox, recording.as_deref()) {
                Ok(machine) => machine,
                Err(result) => return *result,
            };
        for lane in &options.step_lanes {
            match manual_lane(&prepared.plan, lane) {
                Ok(place) => machine.lanes[place].steps_always = true,
                Err(error) => return never_began(machine, error.to_string()),
            }
        }
        if recording.is_none() {
            match Memory::for_run(&prepared.plan.graph) {
                Ok(memory) => machine.memory = memory,
                Err(message) => return never_began(machine, message),
            }
        }
        let Some(entered) = entered else {
            return never_began(machine, "the runtime is shutting down".to_owned());
        };
        let needs_no_thread =
            recording.is_some() || windlass_core::sync::with_world(|world| world.is_some());
        // Before the run goes to a thread of its own, whose attributes its threads would inherit.
        if !needs_no_thread && let Err(message) = machine.begin_watch(&runtime, &options) {
            return never_began(machine, message);
        }
        let lane = driver_lane(&prepared.plan.graph).filter(|_| !needs_no_thread);
        let driver = RunDriver {
            prepared,
            options,
            _known: entered,
        };
        match lane {
            None => driver.drive(machine).await,
            Some(lane) => driver.drive_on_thread(machine, lane, &runtime).await,
        }
    }

    /// Runs it in a task of its own.
    #[track_caller]
    pub fn start(self) -> Running {
        Running {
            control: self.control.clone(),
            task: windlass_runtime::spawn(self.run()),
        }
    }
}

/// A run that cannot begin.
fn never_began(mut machine: Machine, message: String) -> RunResult {
    machine.halt("start", ErrorCode::Runtime, None, message);
    report(machine, StopReason::Error, None)
}

/// Drives a run that has been entered in its runtime, epoch by epoch.
struct RunDriver {
    prepared: Prepared,
    options: RunOptions,
    /// The runtime knows of it as long as this is there.
    _known: Entered,
}

impl RunDriver {
    /// From its begin to its end.
    async fn drive(self, mut machine: Machine) -> RunResult {
        let reason = self.epochs(&mut machine).await;
        close(machine, reason, &self.options).await
    }

    /// The same on a thread of its own: that of a lane that follows the clock.
    async fn drive_on_thread(
        self,
        mut machine: Machine,
        lane: usize,
        runtime: &Handle,
    ) -> RunResult {
        let plan = machine.plan.clone();
        let id = &plan.graph.lanes[lane].id;
        let stop = self.options.stop.clone();
        let no_thread = |why: &str| format!("lane {id} has no thread: {why}");
        let (give, given) = oneshot::channel();
        let on_thread = async move {
            match given.await {
                Ok(machine) => self.drive(machine).await,
                // Nobody waits for it any more, and it is dropped.
                Err(_) => std::future::pending().await,
            }
        };
        // The thread sleeps until its next tick: if nobody waits for it any more, it is told.
        let _told = stop.drop_guard();
        let thread = match driver_thread(&plan.graph, lane).run_in(runtime, on_thread) {
            Ok(thread) => thread,
            Err(error) => return never_began(machine, no_thread(&error.to_string())),
        };
        let refused = refused_strictly(&plan.graph, lane, thread.attributes());
        machine.driver = Some(thread.attributes().clone());
        if !refused.is_empty() {
            let why = format!("the system refused {}", refused.join(", "));
            return never_began(machine, no_thread(&why));
        }
        match give.send(machine) {
            Ok(()) => thread.await,
            Err(machine) => never_began(machine, no_thread("it has gone")),
        }
    }

    /// Starts, and runs epochs until there is a reason not to.
    async fn epochs(&self, machine: &mut Machine) -> StopReason {
        let options = &self.options;
        if machine.start(options).is_err() {
            return machine.halted(&options.stop);
        }
        let most = options.most_epochs(!machine.doors.is_empty());
        let began = clock::now();
        machine.begin_clock(began);
        if let (Some(watch), Some(duration)) = (&machine.watch, options.duration) {
            watch.ends_at(began.saturating_add(nanos(duration)));
        }
        let is_boundary = |c: usize| self.prepared.role(c) != BoundaryRole::Processing;
        if let Err(message) = machine.begin_recording(options, is_boundary) {
            machine.halt("record", ErrorCode::ObserverFailure, None, message);
            return StopReason::Error;
        }
        machine.observe_start();
        let mut epochs = 0;
        let mut idle = false;
        let mut source_progress = machine.source_progress();
        while epochs < most {
            if machine.recording.script.is_some() {
                if !machine.play_epoch() {
                    return machine.recorded_reason();
                }
            } else if !options.stop.is_cancelled() {
                let left = options
                    .duration
                    .map(|d| nanos(d).saturating_sub(clock::now() - began));
                machine.wait(&options.stop, left, idle).await;
            }
            if options.stop.is_cancelled() {
                return StopReason::StopRequested;
            }
            let over = options
                .duration
                .is_some_and(|duration| clock::now() - began >= nanos(duration));
            if over {
                return StopReason::DurationBound;
            }
            let ran = machine.epoch().await;
            let stops = machine.observe_epoch();
            match ran {
                Err(Halt) => return machine.halted(&options.stop),
                Ok(ran) => idle = !ran,
            }
            if stops {
                let message = "an assertion does not hold".to_owned();
                machine.halt("observe", ErrorCode::ObserverFailure, None, message);
                return StopReason::Error;
            }
            let expects = machine.has_news() || machine.expects_news();
            if idle && options.until_idle && !machine.waits_for_time() && !expects {
                return StopReason::Idle;
            }
            // To look whether something has come is no step.
            if !idle || !(expects || machine.waits_for_steps()) {
                epochs += 1;
            }
            // The bound of a run until it is idle is for graphs that never are. As long as a file is read, this is
            // not one of them.
            if options.is_bounded_by_idling() {
                let progress = machine.source_progress();
                if progress != source_progress {
                    epochs = 0;
                }
                source_progress = progress;
            }
            // Others have their turn, however long the run.
            if machine.env.epoch.is_multiple_of(EPOCHS_PER_TURN) {
                yield_now().await;
            }
        }
        StopReason::TickBound
    }
}

/// How many epochs a run does before it lets others have their turn.
const EPOCHS_PER_TURN: u64 = 16;

/// Takes back what is still under way, and stops the components.
async fn close(mut machine: Machine, mut reason: StopReason, options: &RunOptions) -> RunResult {
    if let Some(playback) = machine.sinks.tape.as_mut().and_then(Tape::playback) {
        playback.end_epochs();
    }
    if machine.has_async_loops() && machine.abandon_async_loops().await.is_err() {
        reason = StopReason::Error;
    }
    let tape_end = machine.end_recording(reason);
    let snapshot = options.snapshot.then(|| machine.take_snapshot());
    // Before the components are deactivated: a source that has not ended is told from one that was isolated.
    let losses = machine.losses(reason);
    machine.feed_taps();
    machine.finish(options).await;
    machine.trace_health();
    machine.observe_end(reason);
    let mut result = report(machine, reason, snapshot);
    result.tape_end = tape_end;
    result.losses = losses;
    result
}

fn report(
    machine: Machine,
    stop_reason: StopReason,
    snapshot: Option<crate::run::options::Snapshot>,
) -> RunResult {
    let metrics = machine.metrics();
    if let Some(observer) = machine.observer() {
        observer.finish(&metrics, machine.env.epoch);
    }
    let plan = machine.plan;
    let grants = Grants {
        graph: &plan.graph,
        driver: machine.driver.as_ref(),
        memory: &machine.memory,
    };
    let lanes = machine.lanes.iter().enumerate();
    let grants = lanes.filter_map(|(place, lane)| grants.of(place, &lane.pools));
    let name = |&component: &u32| plan.graph.components[component as usize].id.clone();
    let mut forced: Vec<String> = Vec::new();
    for &component in &machine.forced {
        let id = &plan.graph.components[component].id;
        if !forced.contains(id) {
            forced.push(id.clone());
        }
    }
    RunResult {
        stop_reason,
        ticks: machine.totals.ticks,
        epochs: machine.env.epoch,
        order: machine.sinks.order.iter().map(name).collect(),
        epoch_times: machine.sinks.epoch_times.unwrap_or_default(),
        metrics,
        losses: Vec::new(),
        errors: machine.sinks.errors,
        forced,
        health: machine.sinks.health.report(&plan),
        lane_grants: grants.collect(),
        tape_end: None,
        trace: Trace::resolve(machine.sinks.trace, &plan, machine.clock.began),
        snapshot,
    }
}

impl Machine {
    /// Why a run ends that cannot go on: something failed, or had to be ended because the run is to
    /// stop.
    fn halted(&self, stop: &CancellationToken) -> StopReason {
        match (self.forced.is_empty(), stop.is_cancelled()) {
            (true, _) => StopReason::Error,
            (false, true) => StopReason::StopRequested,
            (false, false) => StopReason::DurationBound,
        }
    }

    /// Whether messages wait for nothing but time.
    fn waits_for_time(&self) -> bool {
        let windows = self.triggers.iter().any(|t| t.window_end().is_some());
        windows || self.has_async_loops()
    }
}

impl Running {
    /// Asks things of it.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Ends it: no new epoch begins.
    pub fn stop(&self) {
        self.control.stop();
    }
}

impl Future for Running {
    type Output = Result<RunResult, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context)
    }
}

impl fmt::Display for RunResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} after {} invocations in {} epochs",
            self.stop_reason, self.ticks, self.epochs
        )
    }
}

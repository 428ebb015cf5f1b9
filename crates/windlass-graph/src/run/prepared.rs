//! A graph that is ready to run, as often as one likes.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use windlass_core::task::{JoinError, JoinHandle};
use windlass_runtime::Handle;

use crate::component::{Catalog, Failure, Registry};
use crate::observe::Level;
use crate::record::{Names, Playback, RecordedDecisions, Recording, Replayed};
use crate::run::driver::{RunDriver, never_began, report};
use crate::run::exec::driver_thread::driver_lane;
use crate::run::exec::inline::outcome;
use crate::run::exec::memory_lock::RunMemory;
use crate::run::exec::overlap::Overlap;
use crate::run::frontend::GraphFrontEnd;
use crate::run::options::RunOptions;
use crate::run::outside::control::{Control, Inbox, InboxCloser, manual_lane};
use crate::run::result::{ErrorCode, RunResult, StopReason};
use crate::run::run_state::RunState;
use crate::run::sinks::recorder::{Recorder, RecorderTarget, replay_options};
use crate::run::state::lanes::Lanes;
use crate::run::state::members::{Member, Members};
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
    closing: InboxCloser,
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

    /// Returns a run that has not begun yet, for callers that need its control first.
    pub fn begin(&self, options: RunOptions) -> Run {
        let inbox = Arc::new(Inbox::of(&self.plan));
        Run {
            closing: InboxCloser {
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

    /// Runs it again as it was recorded: what came from outside comes out of the recording, and
    /// what it does is compared with it. Of the options those count that say what is kept: `trace`,
    /// `snapshot`, the capacities.
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
        let (difference, hash) = match result.replay_end.take() {
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
    pub(crate) fn role(&self, component: usize) -> BoundaryRole {
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
    fn new_state(
        &self,
        runtime: &Handle,
        options: &RunOptions,
        inbox: Arc<Inbox>,
        recording: Option<&Recording>,
    ) -> Result<RunState, Box<RunResult>> {
        let graph = &self.plan.graph;
        let mut members = Vec::with_capacity(graph.components.len());
        let mut missing = Vec::new();
        for (place, component) in graph.components.iter().enumerate() {
            let name = &component.type_name;
            let descriptor = self.registry.descriptor(name);
            let is_finite_source = descriptor.is_some_and(|descriptor| descriptor.finite_source);
            if let Some(played) = recording.and_then(|r| r.played_back(&component.id)) {
                let played = Member::new(Some(Box::new(played)), component.config.clone());
                members.push(played.finite_source(is_finite_source));
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
            let is_preemptible = descriptor.is_some_and(|descriptor| descriptor.preemptible);
            let member = Member::new(made, component.config.clone());
            members.push(
                member
                    .finite_source(is_finite_source)
                    .preemptible(is_preemptible),
            );
        }
        // What is played back needs no threads: everything has been decided.
        let lane_runtime = recording.is_none().then_some(runtime);
        let (lanes, failed) = match Lanes::new(&self.plan, lane_runtime) {
            Ok(lanes) => (lanes, None),
            Err(failed) => (Lanes::default(), Some(failed)),
        };
        let mut overlap = Overlap::of(&self.plan, |component| self.role(component));
        overlap.is_possible &= options.overlap && recording.is_none();
        let plan = self.plan.clone();
        let observed = options.observer.as_ref();
        let tracing = options.trace
            || options.record.is_some()
            || recording.is_some()
            || observed.is_some_and(|observer| observer.wants(Level::Debug));
        let mut state = RunState::new(
            plan,
            Members::new(members),
            lanes,
            inbox,
            overlap,
            options,
            tracing,
        );
        if let Some(recording) = recording {
            state.sinks.trace.start_hashing();
            let decisions = Arc::new(RecordedDecisions::new(recording, &self.plan.graph));
            state.env_mut().decisions = Some(decisions);
            let playback = Box::new(Playback::new(recording));
            let names = Arc::new(Names::of(&self.plan.graph));
            let target = RecorderTarget::Replay(playback);
            state.sinks.recorder = Some(Recorder::new(target, names));
        }
        if let Some((lane, error)) = failed {
            let message = format!("lane {} has no threads: {error}", graph.lanes[lane].id);
            state.sinks.halt("start", ErrorCode::Runtime, None, message);
        }
        for (component, message) in missing {
            state
                .sinks
                .halt("construct", ErrorCode::Validation, Some(component), message);
        }
        if !state.sinks.errors.is_empty() {
            return Err(Box::new(report(state, StopReason::Error, None)));
        }
        Ok(state)
    }
}

impl Run {
    /// Asks things of it.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Runs it here, and waits for its end. Components on `event_loop` and `fixed_rate` lanes run
    /// in the task that awaits this, those on `thread_pool` lanes on threads of their own.
    ///
    /// If the future is dropped, its components are dropped as they are, without being deactivated.
    /// A run on the real clock, which has a thread of its own, comes to its end there instead, as
    /// if it had been asked to stop.
    pub async fn run(self) -> RunResult {
        let Run {
            prepared,
            control,
            mut options,
            closing: _closing,
            recording,
        } = self;
        // Cancelled by the caller's token, and by the runtime's shutdown.
        options.stop = options.stop.child();
        let runtime = Handle::current_or_default();
        let under_way = &control.inbox.under_way;
        let registration =
            GraphFrontEnd::register(&runtime, &prepared.plan, under_way, options.stop.clone());
        let mut state =
            match prepared.new_state(&runtime, &options, control.inbox, recording.as_deref()) {
                Ok(state) => state,
                Err(result) => return *result,
            };
        for lane in &options.step_lanes {
            match manual_lane(&prepared.plan, lane) {
                Ok(place) => state.lanes.lane_mut(place).step_always(),
                Err(error) => return never_began(state, error.to_string()),
            }
        }
        if recording.is_none() {
            match RunMemory::for_run(&prepared.plan.graph) {
                Ok(memory) => state.lanes.set_memory(memory),
                Err(message) => return never_began(state, message),
            }
        }
        let Some(registration) = registration else {
            return never_began(state, "the runtime is shutting down".to_owned());
        };
        let needs_no_thread =
            recording.is_some() || windlass_core::sync::with_world(|world| world.is_some());
        // Before the run goes to a thread of its own, whose attributes its threads would inherit.
        if !needs_no_thread
            && let Err(message) =
                state
                    .members
                    .start_watch(&runtime, &prepared.plan.graph.name, &options)
        {
            return never_began(state, message);
        }
        let lane = driver_lane(&prepared.plan.graph).filter(|_| !needs_no_thread);
        let driver = RunDriver {
            prepared,
            options,
            _registration: registration,
        };
        match lane {
            None => driver.drive(state).await,
            Some(lane) => driver.drive_on_thread(state, lane, &runtime).await,
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

//! Drives a run from its begin to its end: starts the components, runs epochs until there is a
//! reason not to, stops the components, and reports.

use windlass_core::sync::clock;
use windlass_runtime::Handle;
use windlass_runtime::task::yield_now;
use windlass_sync::CancellationToken;
use windlass_sync::channel::oneshot;

use crate::run::exec::driver_thread::{driver_thread, refused_strictly};
use crate::run::frontend::Registration;
use crate::run::options::{RunOptions, Snapshot};
use crate::run::prepared::Prepared;
use crate::run::result::{ErrorCode, RunResult, StopReason};
use crate::run::run_state::{Halt, RunState};
use crate::run::sinks::sink::{RunBegin, Sink};
use crate::run::state::tables::nanos;
use windlass_plan::model::BoundaryRole;

/// A run that cannot begin.
pub(crate) fn never_began(mut state: RunState, message: String) -> RunResult {
    state.sinks.halt("start", ErrorCode::Runtime, None, message);
    report(state, StopReason::Error, None)
}

/// Drives a run that is registered at its runtime, epoch by epoch.
pub(crate) struct RunDriver {
    pub(crate) prepared: Prepared,
    pub(crate) options: RunOptions,
    /// Keeps the run registered at the runtime.
    pub(crate) _registration: Registration,
}

impl RunDriver {
    /// From its begin to its end.
    pub(crate) async fn drive(self, mut state: RunState) -> RunResult {
        let reason = self.epochs(&mut state).await;
        close(state, reason, &self.options).await
    }

    /// The same on a thread of its own: that of a lane that follows the clock.
    pub(crate) async fn drive_on_thread(
        self,
        mut state: RunState,
        lane: usize,
        runtime: &Handle,
    ) -> RunResult {
        let plan = state.tables.plan.clone();
        let id = &plan.graph.lanes[lane].id;
        let stop = self.options.stop.clone();
        let no_thread = |why: &str| format!("lane {id} has no thread: {why}");
        let (give, given) = oneshot::channel();
        let on_thread = async move {
            match given.await {
                Ok(state) => self.drive(state).await,
                // The future that waits for the run was dropped, and the run with it.
                Err(_) => std::future::pending().await,
            }
        };
        // The thread sleeps until its next tick: if the future that waits for it is dropped, the
        // token wakes it.
        let _told = stop.drop_guard();
        let thread = match driver_thread(&plan.graph, lane).run_in(runtime, on_thread) {
            Ok(thread) => thread,
            Err(error) => return never_began(state, no_thread(&error.to_string())),
        };
        let refused = refused_strictly(&plan.graph, lane, thread.attributes());
        state.lanes.set_driver(thread.attributes().clone());
        if !refused.is_empty() {
            let why = format!("the system refused {}", refused.join(", "));
            return never_began(state, no_thread(&why));
        }
        match give.send(state) {
            Ok(()) => thread.await,
            Err(state) => never_began(state, no_thread("it has gone")),
        }
    }

    /// Starts, and runs epochs until there is a reason not to.
    async fn epochs(&self, state: &mut RunState) -> StopReason {
        let options = &self.options;
        let bell = state.inbox.bell.clone();
        let is_replay = state.env.decisions.is_some();
        if state.lifecycle().start(options, &bell, is_replay).is_err() {
            return state.halted(&options.stop);
        }
        let most = options.most_epochs(!state.members.doors().is_empty());
        let began = clock::now();
        state.begin_clock(began);
        if let Some(duration) = options.duration {
            let end = began.saturating_add(nanos(duration));
            state.members.end_calls_at(end);
        }
        let is_boundary = |c: usize| self.prepared.role(c) != BoundaryRole::Processing;
        let (members, is_real) = (&state.members, state.lanes.is_real());
        let begun = state
            .sinks
            .begin_recording(options, members, is_real, is_boundary);
        if let Err(message) = begun {
            let code = ErrorCode::ObserverFailure;
            state.sinks.halt("record", code, None, message);
            return StopReason::Error;
        }
        let graph = &state.tables.plan.graph.name;
        state.sinks.run_begin(&RunBegin { graph });
        let mut epochs = 0;
        let mut idle = false;
        let mut source_progress = state.source_progress();
        while epochs < most {
            if is_replay {
                if !state.play_epoch() {
                    return state.sinks.recorded_reason();
                }
            } else if !options.stop.is_cancelled() {
                let left = options
                    .duration
                    .map(|d| nanos(d).saturating_sub(clock::now() - began));
                state.wait(&options.stop, left, idle).await;
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
            let ran = state.epoch().await;
            let (view, sinks) = state.view();
            let stops = sinks.observe_epoch(view);
            match ran {
                Err(Halt) => return state.halted(&options.stop),
                Ok(ran) => idle = !ran,
            }
            if stops {
                let message = "an assertion does not hold".to_owned();
                let code = ErrorCode::ObserverFailure;
                state.sinks.halt("observe", code, None, message);
                return StopReason::Error;
            }
            let expects = state.members.has_news() || state.members.expect_news();
            if idle && options.until_idle && !state.waits_for_time() && !expects {
                return StopReason::Idle;
            }
            // To look whether something has come is no step.
            if !idle || !(expects || state.lanes.wait_for_steps()) {
                epochs += 1;
            }
            // The bound of a run until it is idle is for graphs that never are. As long as a file
            // is read, this is not one of them.
            if options.is_bounded_by_idling() {
                let progress = state.source_progress();
                if progress != source_progress {
                    epochs = 0;
                }
                source_progress = progress;
            }
            // Others have their turn, however long the run.
            if state.env.epoch.is_multiple_of(EPOCHS_PER_TURN) {
                yield_now().await;
            }
        }
        StopReason::TickBound
    }
}

/// How many epochs a run does before it lets others have their turn.
const EPOCHS_PER_TURN: u64 = 16;

/// Takes back what is still under way, and stops the components.
async fn close(mut state: RunState, mut reason: StopReason, options: &RunOptions) -> RunResult {
    if let Some(playback) = state.sinks.playback() {
        playback.end_epochs();
    }
    if !state.loops.beside().is_empty() && state.abandon_async_loops().await.is_err() {
        reason = StopReason::Error;
    }
    let epochs = state.env.epoch;
    let replay_end = state.sinks.end_recording(reason, epochs);
    let snapshot = options.snapshot.then(|| {
        state.commit_store();
        let store = (*state.env.store).clone();
        state.lifecycle().take_snapshot(store)
    });
    // Before the components are deactivated: afterwards a source that has not ended looks like one
    // that was isolated.
    let (view, sinks) = state.view();
    let losses = sinks.losses(view, reason);
    state.feed_taps();
    state.lifecycle().finish(options).await;
    state.sinks.trace_health(epochs);
    let (view, sinks) = state.view();
    sinks.observe_end(view, reason);
    let mut result = report(state, reason, snapshot);
    result.replay_end = replay_end;
    result.losses = losses;
    result
}

/// Returns what came of a run.
pub(crate) fn report(
    mut state: RunState,
    stop_reason: StopReason,
    snapshot: Option<Snapshot>,
) -> RunResult {
    let epochs = state.env.epoch;
    let (view, sinks) = state.view();
    let metrics = sinks.metrics(view);
    if let Some(observer) = sinks.observer() {
        observer.finish(&metrics, epochs);
    }
    let plan = state.tables.plan.clone();
    let name = |&component: &u32| plan.graph.components[component as usize].id.clone();
    let mut forced: Vec<String> = Vec::new();
    for &component in state.members.forced() {
        let id = &plan.graph.components[component].id;
        if !forced.contains(id) {
            forced.push(id.clone());
        }
    }
    let sinks = state.sinks;
    RunResult {
        stop_reason,
        ticks: state.calls.ticks(),
        epochs,
        order: sinks.history.order().iter().map(name).collect(),
        epoch_times: sinks.history.into_epoch_times(),
        metrics,
        losses: Vec::new(),
        errors: sinks.errors,
        forced,
        health: sinks.health.report(&plan),
        lane_grants: state.lanes.grants(&plan.graph),
        replay_end: None,
        trace: sinks.trace.into_trace(sinks.began),
        snapshot,
    }
}

impl RunState {
    /// Returns why a run ends that cannot go on: something failed, or had to be ended because the
    /// run is to stop.
    fn halted(&self, stop: &CancellationToken) -> StopReason {
        match (self.members.forced().is_empty(), stop.is_cancelled()) {
            (true, _) => StopReason::Error,
            (false, true) => StopReason::StopRequested,
            (false, false) => StopReason::DurationBound,
        }
    }

    /// The first epoch is about to begin: time counts from now, if it is real.
    fn begin_clock(&mut self, now: u64) {
        let has_doors = !self.members.doors().is_empty();
        let decisions = self.env.decisions.as_deref();
        let recorded = decisions.map(|decisions| decisions.on_clock);
        self.lanes.begin_clock(now, has_doors, recorded);
        if let Some(decisions) = decisions {
            let components = self.tables.plan.graph.components.iter().enumerate();
            let doors = components.filter(|(_, c)| decisions.doors.contains(&c.id));
            let doors = doors.map(|(place, _)| place).collect();
            self.members.set_recorded_doors(doors);
        }
    }

    /// Takes the next epoch of a recording; false after the last.
    fn play_epoch(&mut self) -> bool {
        let playback = self.sinks.playback();
        let Some(epoch) = playback.and_then(|playback| playback.next_epoch()) else {
            return false;
        };
        self.lanes.set_turns(&epoch.lanes);
        self.members.set_doors_seen(&epoch.doors, &self.tables.plan);
        if self.lanes.is_real() {
            self.loops.beside_mut().set_recorded_back(epoch.joined);
        }
        for changes in epoch.config {
            self.inbox.add_transaction(changes);
        }
        true
    }
}

//! Where a run says what it did: counts, health, trace, errors, observers and the recording.

pub(crate) mod counts;
pub(crate) mod health;
pub(crate) mod histogram;
pub(crate) mod history;
pub(crate) mod losses;
pub(crate) mod metrics;
pub(crate) mod observer_feed;
pub(crate) mod recorder;
pub(crate) mod sink;
pub(crate) mod trace;
pub(crate) mod trace_sink;

use std::sync::Arc;

use windlass_core::sync::clock;

use crate::component::Env;
use crate::run::exec::calls::Calls;
use crate::run::options::RunOptions;
use crate::run::outside::control::Inbox;
use crate::run::result::{ErrorCode, RuntimeError};
use crate::run::run_state::Halt;
use crate::run::sinks::counts::Counts;
use crate::run::sinks::health::Health;
use crate::run::sinks::history::History;
use crate::run::sinks::observer_feed::ObserverFeed;
use crate::run::sinks::recorder::Recorder;
use crate::run::sinks::trace_sink::TraceSink;
use crate::run::state::channels::Channels;
use crate::run::state::lanes::Lanes;
use crate::run::state::members::Members;
use crate::run::state::triggers::Triggers;
use windlass_plan::compile::{Plan, Region};

/// How many errors that do not end a run it keeps.
const ERRORS: usize = 1024;

/// Everything that a run writes to and does not read to decide what to do next.
pub(crate) struct Sinks {
    pub(crate) plan: Arc<Plan>,
    /// When the run began, in nanoseconds of the process's clock.
    pub(crate) began: u64,
    pub(crate) counts: Counts,
    pub(crate) health: Health,
    pub(crate) trace: TraceSink,
    pub(crate) errors: Vec<RuntimeError>,
    pub(crate) history: History,
    /// What observers get.
    pub(crate) observer_feed: Option<Box<ObserverFeed>>,
    /// What the run writes down about itself.
    pub(crate) recorder: Option<Recorder>,
}

/// What reports read of a run, besides what the sinks have.
#[derive(Clone, Copy)]
pub(crate) struct RunView<'a> {
    pub(crate) env: &'a Env,
    pub(crate) members: &'a Members,
    pub(crate) channels: &'a Channels,
    pub(crate) triggers: &'a Triggers,
    pub(crate) lanes: &'a Lanes,
    pub(crate) calls: &'a Calls,
    pub(crate) inbox: &'a Inbox,
}

impl Sinks {
    pub(crate) fn new(plan: &Arc<Plan>, options: &RunOptions, tracing: bool) -> Sinks {
        let observer = options.observer.clone();
        Sinks {
            plan: plan.clone(),
            began: clock::now(),
            counts: Counts::of(plan),
            health: Health::new(plan, tracing),
            trace: TraceSink::new(plan, tracing, options),
            errors: Vec::new(),
            history: History::new(options),
            observer_feed: observer.map(ObserverFeed::new).map(Box::new),
            recorder: None,
        }
    }

    /// Makes sinks for a part of the run that runs beside the epochs and comes back.
    pub(crate) fn beside(&self) -> Sinks {
        Sinks {
            plan: self.plan.clone(),
            began: self.began,
            counts: Counts::of(&self.plan),
            health: Health::new(&self.plan, false),
            trace: self.trace.beside(),
            errors: Vec::new(),
            history: self.history.beside(),
            observer_feed: None,
            recorder: self.recorder.as_ref().map(Recorder::of_part),
        }
    }

    /// Takes in what such sinks have.
    pub(crate) fn merge(&mut self, mut other: Sinks, region: &Region) {
        self.counts.merge(&other.counts, region);
        self.history.merge(other.history);
        self.trace.merge(other.trace);
        if let Some((recorder, other)) = self.recorder.as_mut().zip(other.recorder) {
            recorder.merge(other);
        }
        self.errors.append(&mut other.errors);
        self.health.merge(&mut other.health);
    }

    /// Traces the health events that are new.
    pub(crate) fn trace_health(&mut self, epoch: u64) {
        if self.health.has_fresh() {
            let fresh = self.health.take_fresh();
            self.trace.add_health(epoch, fresh);
        }
    }

    /// Keeps an error that ends the run.
    pub(crate) fn halt(
        &mut self,
        phase: &str,
        code: ErrorCode,
        component: Option<usize>,
        message: String,
    ) -> Halt {
        self.add_error(phase, code, component, message, true);
        Halt
    }

    /// Keeps an error, unless there are very many that do not end the run.
    pub(crate) fn add_error(
        &mut self,
        phase: &str,
        code: ErrorCode,
        component: Option<usize>,
        message: String,
        fatal: bool,
    ) {
        // A component that fails at every message must not fill the memory.
        if !fatal && self.errors.len() >= ERRORS {
            return;
        }
        let component = component.map(|c| &self.plan.graph.components[c]);
        self.errors.push(RuntimeError {
            phase: phase.to_owned(),
            component_id: component.map_or_else(String::new, |c| c.id.clone()),
            lane: component.map_or_else(String::new, |c| c.execution.lane.clone()),
            message,
            code,
            trace_id: format!("{}#1", self.plan.graph.name),
            fatal,
        });
    }
}

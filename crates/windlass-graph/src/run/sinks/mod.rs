//! Where a run says what it did: counts, health, trace, errors, observers and the recording.

pub(crate) mod counts;
pub(crate) mod health;
pub(crate) mod histogram;
pub(crate) mod losses;
pub(crate) mod metrics;
pub(crate) mod observer_feed;
pub(crate) mod recorder;
pub(crate) mod trace;

use windlass_plan::compile::Plan;

use crate::record::Tape;
use crate::run::machine::{Counts, Halt};
use crate::run::options::RunOptions;
use crate::run::result::{ErrorCode, RuntimeError};
use crate::run::sinks::health::Health;
use crate::run::sinks::observer_feed::ObserverFeed;
use crate::run::sinks::trace::{Recorded, TraceName, Tracing};
use crate::run::state::tables::Tables;

/// How many errors that do not end a run it keeps.
const ERRORS: usize = 1024;

/// Everything that a run writes to and does not read to decide what to do next.
pub(crate) struct Sinks {
    /// The number of the current epoch.
    pub(crate) epoch: u64,
    pub(crate) counts: Counts,
    pub(crate) health: Health,
    pub(crate) trace: Tracing,
    pub(crate) errors: Vec<RuntimeError>,
    /// The components in the order of their invocations.
    pub(crate) order: Vec<u32>,
    pub(crate) order_capacity: usize,
    /// What each epoch took, if the options ask for it.
    pub(crate) epoch_times: Option<Vec<u64>>,
    /// What observers get.
    pub(crate) observer_feed: Option<Box<ObserverFeed>>,
    /// What the run writes down about itself.
    pub(crate) tape: Option<Tape>,
}

impl Sinks {
    pub(crate) fn new(plan: &Plan, options: &RunOptions, tracing: bool) -> Sinks {
        let observer = options.observer.clone();
        Sinks {
            epoch: 0,
            counts: Counts::of(plan),
            health: Health::new(plan, tracing),
            trace: Tracing::new(tracing, options),
            errors: Vec::new(),
            order: Vec::new(),
            order_capacity: options.order_capacity,
            epoch_times: options.epoch_times.then(Vec::new),
            observer_feed: observer.map(ObserverFeed::new).map(Box::new),
            tape: None,
        }
    }

    /// Makes sinks for a part of the run that runs beside the epochs and comes back.
    pub(crate) fn beside(&self, plan: &Plan) -> Sinks {
        Sinks {
            epoch: self.epoch,
            counts: Counts::of(plan),
            health: Health::new(plan, false),
            trace: self.trace.beside(),
            errors: Vec::new(),
            order: Vec::new(),
            order_capacity: self.order_capacity,
            epoch_times: None,
            observer_feed: None,
            tape: self.tape.as_ref().map(Tape::of_part),
        }
    }

    /// Returns an event of a component.
    pub(crate) fn event(
        &self,
        tables: &Tables,
        name: TraceName,
        component: usize,
        at: u64,
    ) -> Recorded {
        Recorded {
            component: component as u32,
            lane: tables.components[component].lane as u32,
            ..Recorded::new(name, self.epoch, at)
        }
    }

    /// Keeps an error that ends the run.
    pub(crate) fn halt(
        &mut self,
        plan: &Plan,
        phase: &str,
        code: ErrorCode,
        component: Option<usize>,
        message: String,
    ) -> Halt {
        self.add_error(plan, phase, code, component, message, true);
        Halt
    }

    /// Keeps an error, unless there are very many that do not end the run.
    pub(crate) fn add_error(
        &mut self,
        plan: &Plan,
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
        let component = component.map(|c| &plan.graph.components[c]);
        self.errors.push(RuntimeError {
            phase: phase.to_owned(),
            component_id: component.map_or_else(String::new, |c| c.id.clone()),
            lane: component.map_or_else(String::new, |c| c.execution.lane.clone()),
            message,
            code,
            trace_id: format!("{}#1", plan.graph.name),
            fatal,
        });
    }
}

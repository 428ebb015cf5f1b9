//! What others may ask of a run while it goes on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_core::sync::clock;
use windlass_sync::CancellationToken;
use windlass_sync::lock::Notify;

use crate::component::Failure;
use crate::observe::Observer;
use crate::run::exec::invoke::outcome;
use crate::run::exec::under_way::UnderWay;
use crate::run::machine::{Halt, Machine};
use crate::run::outside::tap::{Tap, TapError};
use crate::run::result::ErrorCode;
use crate::run::sinks::trace::TraceName;
use windlass_plan::compile::Plan;
use windlass_plan::model::{Config, LaneKind, Readers};

/// Asks things of a run while it goes on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) plan: Arc<Plan>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) stop: CancellationToken,
}

/// What a run was asked, and has not done yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    asked: Mutex<Asked>,
    epochs: AtomicU64,
    ticks: AtomicU64,
    /// Who has been called and has not returned.
    pub(crate) under_way: Arc<UnderWay>,
    /// Wakes the run when it waits for the world outside.
    pub(crate) bell: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Asked {
    transactions: Vec<ConfigTransaction>,
    taps: Vec<Tap>,
    /// Steps, by lane.
    steps: BTreeMap<usize, u64>,
    /// The run has ended, or will never begin: nobody looks here any more.
    over: bool,
}

/// Closes the inbox of a run when that ends, in whatever way: who waits for it is told.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) observer: Option<Observer>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        let taps = {
            let mut asked = self.inbox.asked.lock();
            asked.over = true;
            std::mem::take(&mut asked.taps)
        };
        taps.iter().for_each(Tap::end);
        if let Some(observer) = &self.observer {
            observer.close();
        }
    }
}

/// How many transactions may wait for the next epoch.
const TRANSACTIONS: usize = 1024;

/// Why a configuration cannot be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// The run has ended.
    Ended,
    /// As many transactions as may wait for the next epoch.
    TooMany {
        /// How many may.
        most: usize,
    },
}

impl fmt::Display for ReconfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReconfigureError::Ended => f.write_str("the run has ended"),
            ReconfigureError::TooMany { most } => write!(
                f,
                "{most} transactions wait for the next epoch: put changes together, or wait for it"
            ),
        }
    }
}

impl std::error::Error for ReconfigureError {}

/// Why a lane cannot be stepped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepError {
    /// There is no lane of this id.
    NoLane(String),
    /// The lane runs by itself.
    NotManual(String),
    /// The run has ended.
    Ended,
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepError::NoLane(lane) => write!(f, "there is no lane {lane}"),
            StepError::NotManual(lane) => write!(
                f,
                "lane {lane} runs by itself: give it `type: manual_step` to step it"
            ),
            StepError::Ended => f.write_str("the run has ended"),
        }
    }
}

impl std::error::Error for StepError {}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Epochs that have ended.
    pub epochs: u64,
    /// Invocations that have ended.
    pub ticks: u64,
}

/// New configurations for some components: all of them, or none.
///
/// Each component says first whether it could work with its new configuration; then each is given it. If one
/// cannot, those that already have theirs get the old one back, and the run ends with an error.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigTransaction {
    changes: Vec<(String, Config)>,
}

impl ConfigTransaction {
    /// Without a change.
    pub fn new() -> ConfigTransaction {
        ConfigTransaction::default()
    }

    /// Gives this component another configuration, which replaces the one it has.
    pub fn set(mut self, component: impl Into<String>, config: Config) -> ConfigTransaction {
        self.changes.push((component.into(), config));
        self
    }
}

impl Control {
    /// Ends the run: no new epoch begins.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Changes configurations when the next epoch begins. If there is none, `runtime.config.unapplied_count` tells.
    pub fn reconfigure(&self, transaction: ConfigTransaction) -> Result<(), ReconfigureError> {
        let mut asked = self.inbox.asked.lock();
        if asked.over {
            return Err(ReconfigureError::Ended);
        }
        if asked.transactions.len() >= TRANSACTIONS {
            return Err(ReconfigureError::TooMany { most: TRANSACTIONS });
        }
        asked.transactions.push(transaction);
        drop(asked);
        self.inbox.bell.notify_one();
        Ok(())
    }

    /// Lets a lane of type `manual_step` run once: in the next epoch, or in the one after those that were asked for
    /// before.
    pub fn step(&self, lane: &str) -> Result<(), StepError> {
        let place = manual_lane(&self.plan, lane)?;
        let mut asked = self.inbox.asked.lock();
        if asked.over {
            return Err(StepError::Ended);
        }
        let steps = asked.steps.entry(place).or_default();
        *steps = steps.saturating_add(1);
        drop(asked);
        self.inbox.bell.notify_one();
        Ok(())
    }

    /// The ids of the components that have been called and have not returned. A run that does not
    /// stop is waiting for these.
    pub fn under_way(&self) -> Vec<String> {
        self.inbox.under_way.ids(&self.plan)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        // Relaxed: two numbers for people.
        Progress {
            epochs: self.inbox.epochs.load(Ordering::Relaxed),
            ticks: self.inbox.ticks.load(Ordering::Relaxed),
        }
    }

    /// Reads this edge from the next epoch on; its policy has to say `readers: multi`. Of a run that has ended
    /// there is nothing to read.
    pub fn tap(&self, edge: &str) -> Result<Tap, TapError> {
        let edges = &self.plan.graph.edges;
        let Some(place) = edges.iter().position(|there| there.id == edge) else {
            return Err(TapError::NoEdge(edge.to_owned()));
        };
        let policy = &edges[place].policy;
        if policy.readers == Readers::Single {
            return Err(TapError::SingleReader(edge.to_owned()));
        }
        let tap = Tap::new(place, policy.capacity);
        let mut asked = self.inbox.asked.lock();
        match asked.over {
            false => asked.taps.push(tap.clone()),
            true => tap.end(),
        }
        Ok(tap)
    }
}

/// The place of a lane that waits for steps.
pub(crate) fn manual_lane(plan: &Plan, lane: &str) -> Result<usize, StepError> {
    match plan.graph.lane(lane) {
        None => Err(StepError::NoLane(lane.to_owned())),
        Some((_, there)) if there.kind != LaneKind::ManualStep => {
            Err(StepError::NotManual(lane.to_owned()))
        }
        Some((place, _)) => Ok(place),
    }
}

impl Inbox {
    pub(crate) fn of(plan: &Plan) -> Inbox {
        Inbox {
            asked: Mutex::default(),
            epochs: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            under_way: Arc::new(UnderWay::of(plan)),
            bell: Arc::default(),
        }
    }

    pub(crate) fn set_progress(&self, epochs: u64, ticks: u64) {
        self.epochs.store(epochs, Ordering::Relaxed);
        self.ticks.store(ticks, Ordering::Relaxed);
    }

    /// Whether somebody has asked for something.
    pub(crate) fn is_asked(&self) -> bool {
        let asked = self.asked.lock();
        !asked.transactions.is_empty() || !asked.taps.is_empty() || !asked.steps.is_empty()
    }

    /// A transaction out of a recording.
    pub(crate) fn add_transaction(&self, changes: Vec<(String, Config)>) {
        self.asked
            .lock()
            .transactions
            .push(ConfigTransaction { changes });
    }

    pub(crate) fn take_steps(&self) -> BTreeMap<usize, u64> {
        std::mem::take(&mut self.asked.lock().steps)
    }

    pub(crate) fn take_taps(&self) -> Vec<Tap> {
        std::mem::take(&mut self.asked.lock().taps)
    }

    /// How many transactions nobody has done.
    pub(crate) fn unapplied(&self) -> usize {
        self.asked.lock().transactions.len()
    }
}

impl Machine {
    /// Does what it was asked: each transaction whole, or the run ends.
    pub(crate) fn commit_config(&mut self) -> Result<(), Halt> {
        let transactions = std::mem::take(&mut self.inbox.asked.lock().transactions);
        transactions
            .into_iter()
            .try_for_each(|transaction| self.reconfigure(transaction))
    }

    fn reconfigure(&mut self, transaction: ConfigTransaction) -> Result<(), Halt> {
        if self.sinks.tape.is_some() {
            self.recording
                .reconfigured
                .push(transaction.changes.clone());
        }
        let mut changes = Vec::with_capacity(transaction.changes.len());
        for (id, config) in transaction.changes {
            let Some((component, _)) = self.plan.graph.component(&id) else {
                let message = format!("the transaction names component {id}, which is not there");
                return Err(self.halt("config", ErrorCode::Runtime, None, message));
            };
            changes.push((component, config));
        }
        for (component, config) in &changes {
            self.note_config(TraceName::ConfigTransactionValidate, *component);
            self.sinks.counts.run.config_validated += 1;
            self.ask(*component, |member| member.validate_config(config))
                .map_err(|message| self.config_failed(*component, message))?;
        }
        for (done, (component, config)) in changes.iter().enumerate() {
            self.note_config(TraceName::ConfigTransactionApply, *component);
            self.sinks.counts.run.config_applied += 1;
            if let Err(message) = self.ask(*component, |member| member.reconfigure(config)) {
                let applied: Vec<usize> = changes[..=done].iter().map(|(c, _)| *c).collect();
                self.roll_back(&applied);
                return Err(self.config_failed(*component, message));
            }
        }
        for (component, config) in changes {
            self.note_config(TraceName::ConfigTransactionCommit, component);
            self.configs[component] = config;
        }
        self.sinks.counts.run.config_committed += 1;
        Ok(())
    }

    /// Gives back the old configurations, the last first.
    fn roll_back(&mut self, applied: &[usize]) {
        for &component in applied.iter().rev() {
            self.note_config(TraceName::ConfigTransactionRollback, component);
            self.sinks.counts.run.config_rolled_back += 1;
            let old = self.configs[component].clone();
            if let Err(message) = self.ask(component, |member| member.reconfigure(&old)) {
                let message = format!("could not go back to its old configuration: {message}");
                let code = ErrorCode::Runtime;
                self.add_error("config", code, Some(component), message, false);
            }
        }
    }

    fn config_failed(&mut self, component: usize, message: String) -> Halt {
        let message = format!("refused its new configuration: {message}");
        self.halt("config", ErrorCode::Runtime, Some(component), message)
    }

    fn note_config(&mut self, name: TraceName, component: usize) {
        if self.sinks.trace.on {
            let event = self.recorded(name, component, clock::now());
            self.sinks.trace.push(event);
        }
    }

    /// Calls a component outside of invocations; a panic is a failure like any other.
    pub(crate) fn ask<T>(
        &mut self,
        component: usize,
        question: impl FnOnce(&mut dyn crate::component::Component) -> Result<T, Failure>,
    ) -> Result<T, String> {
        let there = &mut self.members[component];
        let Some(member) = there.component.as_deref_mut() else {
            return Err("it is not there".to_owned());
        };
        let call = || {
            outcome(std::panic::catch_unwind(std::panic::AssertUnwindSafe(
                || question(member),
            )))
        };
        self.env.under_way.begin_shared(component);
        let (answer, forced) = match &there.deadline {
            None => (call(), None),
            Some(deadline) => deadline.stopped(call),
        };
        self.env.under_way.end_shared(component);
        match forced {
            None => answer,
            Some(message) => {
                self.forced.push(component);
                Err(message)
            }
        }
    }
}

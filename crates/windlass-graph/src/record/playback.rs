//! Playing a recording back: what comes from outside comes out of it, and what the run does is
//! compared with it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_plan::model::Graph;
use windlass_record::{Comparison, Difference, Digest};

use super::line::{CallLine, EpochLine, GraphFormat, Line};
use super::recording::Recording;
use crate::component::{Component, Failure, Invocation, LoopReport, Reentrant, Staged};
use crate::run::result::{RunResult, StopReason};

/// What came of a replay.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replayed {
    /// What the run did.
    pub result: RunResult,
    /// Where it first did something else than was recorded.
    pub difference: Option<RunDifference>,
    /// The hash of all that it did; empty if it did not get to its end.
    pub hash: String,
    /// That of the recording; none if that is not complete.
    pub recorded_hash: Option<String>,
}

impl Replayed {
    /// Whether it did what was recorded.
    pub fn is_same(&self) -> bool {
        let hash = self.recorded_hash.as_ref();
        self.difference.is_none() && hash.is_none_or(|recorded| *recorded == self.hash)
    }
}

/// Where a replay first did something else than was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunDifference {
    /// The epoch in which it happened.
    pub epoch: u64,
    /// The component that did something else; empty if no invocation did.
    pub component: String,
    /// The number of the invocation; 0 if no invocation did something else.
    pub transaction: u64,
    /// What was recorded, and what happened instead.
    pub difference: Difference,
}

impl fmt::Display for RunDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}", self.epoch)?;
        if !self.component.is_empty() {
            let (component, transaction) = (&self.component, self.transaction);
            write!(f, ", component {component}, call {transaction}")?;
        }
        write!(f, ", {}", self.difference)
    }
}

/// What was decided outside of the graph, to be decided again.
#[derive(Debug, Default)]
pub(crate) struct RecordedDecisions {
    /// Where each call is in the recording.
    positions: HashMap<u64, usize>,
    cancelled_after: HashMap<u64, u32>,
    /// The calls that were ended because their time was over.
    timed_out: HashMap<u64, CallLine>,
    /// Loops that were stopped, by id, run and pass; and whether by their budget.
    stopped: HashMap<(String, u64, u64), bool>,
    pub(crate) on_clock: bool,
    /// The components that had a door.
    pub(crate) doors: HashSet<String>,
    /// Where the edges of this graph are, by id.
    edges: HashMap<Arc<str>, u32>,
}

impl RecordedDecisions {
    pub(crate) fn new(recording: &Recording, graph: &Graph) -> RecordedDecisions {
        let edges = graph.edges.iter().zip(0..);
        let mut decisions = RecordedDecisions {
            on_clock: recording.header().on_clock,
            doors: recording.header().doors.iter().cloned().collect(),
            edges: edges
                .map(|(edge, nth)| (edge.id.as_str().into(), nth))
                .collect(),
            ..RecordedDecisions::default()
        };
        for (nth, line) in recording.lines().iter().enumerate() {
            match line {
                Line::Epoch(_) => {}
                Line::Call(call) => {
                    decisions.positions.insert(call.transaction, nth);
                    let cancelled = call.cancelled_after.map(|after| (call.transaction, after));
                    decisions.cancelled_after.extend(cancelled);
                    let ended = call.timed_out.then(|| (call.transaction, call.clone()));
                    decisions.timed_out.extend(ended);
                }
                Line::Loop(stopped) => {
                    let key = (stopped.composite.clone(), stopped.run, stopped.pass);
                    decisions.stopped.insert(key, stopped.budget);
                }
            }
        }
        decisions
    }

    /// Where a call is in the recording; those that are not there come last.
    pub(crate) fn position(&self, transaction: u64) -> usize {
        self.positions
            .get(&transaction)
            .copied()
            .unwrap_or(usize::MAX)
    }

    /// Returns when a call was asked to cancel: after how many times of asking.
    #[cold]
    #[inline(never)]
    pub(crate) fn cancelled_after(&self, transaction: u64) -> Option<u32> {
        self.cancelled_after.get(&transaction).copied()
    }

    /// Ends a call that was ended because its time was over, as it was ended then; gives what was
    /// said. It is not made again: the recording does not say how far it got, and without a clock
    /// it would not end. If the graph has no limit for the component any more, it is made, so that
    /// the replay shows what the change does.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_again(&self, invocation: &mut Invocation<'_>) -> Option<String> {
        let call = self.timed_out.get(&invocation.transaction())?;
        let now = &invocation.env.plan.graph.components[invocation.component as usize];
        if *now.id != *call.component || now.execution.timeout.is_zero() {
            return None;
        }
        self.play(call.clone(), invocation)
    }

    /// Whether a loop was stopped after this pass, and whether by its budget.
    pub(crate) fn stopped(&self, composite: &str, run: u64, pass: u64) -> Option<bool> {
        self.stopped
            .get(&(composite.to_owned(), run, pass))
            .copied()
    }
}

/// A recording that is being played back.
#[derive(Debug)]
pub(crate) struct Playback {
    comparison: Comparison<GraphFormat>,
    epochs: VecDeque<EpochLine>,
    epoch: u64,
    /// Nothing more is compared.
    is_over: bool,
    pub(crate) difference: Option<RunDifference>,
    /// Why the recorded run ended; none if the recording breaks off.
    pub(crate) reason: Option<StopReason>,
}

impl Playback {
    pub(crate) fn new(recording: &Recording) -> Playback {
        let epochs = recording.lines().iter().filter_map(|line| match line {
            Line::Epoch(epoch) => Some(epoch.clone()),
            _ => None,
        });
        Playback {
            comparison: Comparison::new(&recording.content),
            epochs: epochs.collect(),
            epoch: 0,
            is_over: false,
            difference: None,
            reason: recording.content.end.as_ref().map(|end| end.reason),
        }
    }

    /// The hash of all that was compared.
    pub(crate) fn digest(&self) -> Digest {
        self.comparison.digest()
    }

    /// The next epoch; none after the last.
    pub(crate) fn next_epoch(&mut self) -> Option<EpochLine> {
        self.epochs.pop_front()
    }

    /// Compares what has happened with what was recorded.
    pub(crate) fn compare(&mut self, line: &Line) {
        if self.difference.is_some() || self.is_over {
            return;
        }
        let recorded = self.comparison.rest().first();
        // If an epoch begins too early, what is missing is of the one before.
        if let (Line::Epoch(epoch), Some(Line::Epoch(_))) = (line, recorded) {
            self.epoch = epoch.epoch;
        }
        let call = call_of(line).or_else(|| recorded.and_then(call_of));
        if let Err(difference) = self.comparison.check(line) {
            self.differ(call, difference);
        }
    }

    /// The epochs are over. What follows in the run is not in a recording that breaks off.
    pub(crate) fn end_epochs(&mut self) {
        if self.reason.is_none() {
            self.finish();
        }
    }

    /// The run is over: whether something was still to come.
    pub(crate) fn finish(&mut self) {
        if self.difference.is_none()
            && !self.is_over
            && let Err(difference) = self.comparison.finish()
        {
            let call = self.comparison.rest().first().and_then(call_of);
            self.differ(call, difference);
        }
        self.is_over = true;
    }

    fn differ(&mut self, call: Option<(String, u64)>, difference: Difference) {
        let (component, transaction) = call.unwrap_or_default();
        self.difference = Some(RunDifference {
            epoch: self.epoch,
            component,
            transaction,
            difference,
        });
    }
}

/// Returns the component and the number of the invocation that a line is about.
fn call_of(line: &Line) -> Option<(String, u64)> {
    match line {
        Line::Call(call) => Some((call.component.to_string(), call.transaction)),
        _ => None,
    }
}

/// Stands for a component that is not called: publishes what was recorded.
#[derive(Debug, Clone)]
pub(crate) struct PlaybackComponent {
    calls: Arc<Mutex<VecDeque<CallLine>>>,
    reentrant: bool,
}

impl PlaybackComponent {
    pub(crate) fn new(recording: &Recording, component: &str) -> PlaybackComponent {
        let calls = recording.lines().iter().filter_map(|line| match line {
            Line::Call(call) if *call.component == *component => Some(call.clone()),
            _ => None,
        });
        let mut reentrant = recording.header().reentrant.iter();
        PlaybackComponent {
            calls: Arc::new(Mutex::new(calls.collect())),
            reentrant: reentrant.any(|id| id == component),
        }
    }

    fn next(&self, transaction: u64) -> Option<CallLine> {
        let mut calls = self.calls.lock();
        let place = calls
            .iter()
            .position(|call| call.transaction == transaction)?;
        calls.remove(place)
    }
}

impl Component for PlaybackComponent {
    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        Reentrant::execute(self, invocation)
    }

    fn reentrant(&mut self) -> Option<Arc<dyn Reentrant>> {
        self.reentrant
            .then(|| Arc::new(self.clone()) as Arc<dyn Reentrant>)
    }
}

impl Reentrant for PlaybackComponent {
    fn execute(&self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        // One that is not in the recording is a difference, which is found when it is compared.
        let wanted = invocation.transaction();
        let Some(call) = self.next(wanted) else {
            return Ok(());
        };
        let Some(decisions) = invocation.env.decisions.clone() else {
            return Ok(());
        };
        let is_there = |edge: &Arc<str>| decisions.edges.contains_key(edge);
        for output in call.outputs.iter().filter(|o| is_there(&o.edge)) {
            if let Some(name) = output.value.unrecorded() {
                return Err(Failure::new(format!(
                    "a value of type {name} cannot be recorded: publish JSON, text, bytes or numbers at the boundary"
                )));
            }
        }
        match decisions.play(call, invocation) {
            Some(why) => Err(Failure::new(why)),
            None => Ok(()),
        }
    }
}

impl RecordedDecisions {
    /// Does what a call did then; returns why it failed.
    fn play(&self, call: CallLine, invocation: &mut Invocation<'_>) -> Option<String> {
        let mut staged = Vec::with_capacity(call.outputs.len());
        // What went to an edge that is not there any more goes nowhere.
        for output in call.outputs {
            if let Some(&edge) = self.edges.get(&output.edge) {
                staged.push(Staged {
                    payload: output.value,
                    edge,
                    publish: output.publish,
                    transaction: call.transaction,
                    ..invocation.staged(output.event_time)
                });
            }
        }
        let refused = call.refused.iter();
        let out = &mut *invocation.out;
        out.staged = staged;
        out.state = call
            .state
            .into_iter()
            .map(|stored| (stored.key.into(), stored.value))
            .collect();
        out.report = call.report.map(|report| LoopReport {
            converged: report.converged,
            residual: report.residual.as_f64(),
            reason: report.reason,
        });
        out.refused = refused
            .filter_map(|edge| self.edges.get(edge).copied())
            .collect();
        out.finished = call.finished;
        out.held = call.held;
        out.observed_cancel = call.cancelled_after.is_some();
        out.cancelled_after = call.cancelled_after;
        out.timed_out = call.timed_out;
        call.failed
    }
}

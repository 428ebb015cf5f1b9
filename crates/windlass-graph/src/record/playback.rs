//! Playing a recording back: what comes from outside comes out of it, and what the run does is compared with it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;

use super::RUN_FILE;
use super::entry::{CallEntry, Entry, EpochEntry};
use super::reader::{Edited, Recording};
use crate::component::{Component, Failure, Invocation, LoopReport, Reentrant, Staged};
use crate::run::{RunResult, StopReason};

/// What came of a replay.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replayed {
    /// What the run did.
    pub result: RunResult,
    /// Where it first did something else than was recorded.
    pub difference: Option<Difference>,
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
pub struct Difference {
    /// The epoch.
    pub epoch: u64,
    /// The component, or the empty text.
    pub component: String,
    /// The number of the invocation; 0 if it is about none.
    pub transaction: u64,
    /// What was recorded, as a line; empty: nothing more.
    pub recorded: String,
    /// What happened instead, as a line; empty: nothing more.
    pub replayed: String,
    /// The number of the line in `run.ndjson`, from 1, if that was changed after it was recorded. The replay did
    /// what the line says now.
    pub edited_line: Option<usize>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_nothing = |line: &str| match line {
            "" => "nothing".to_owned(),
            line => line.to_owned(),
        };
        write!(f, "epoch {}", self.epoch)?;
        if !self.component.is_empty() {
            write!(
                f,
                ", component {}, call {}",
                self.component, self.transaction
            )?;
        }
        if let Some(line) = self.edited_line {
            return write!(
                f,
                ":\n  line {line} of {RUN_FILE}, or one before it, was changed after it was recorded: {}",
                self.recorded
            );
        }
        write!(
            f,
            ":\n  recorded: {}\n  replayed: {}",
            or_nothing(&self.recorded),
            or_nothing(&self.replayed)
        )
    }
}

/// What was decided outside of the graph, to be decided again.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Where each call is in the recording.
    positions: HashMap<u64, usize>,
    cancelled_after: HashMap<u64, u32>,
    /// The calls that were ended because their time was over.
    timed_out: HashMap<u64, CallEntry>,
    /// Loops that were stopped, by id, run and pass; and whether by their budget.
    stopped: HashMap<(String, u64, u64), bool>,
    pub(crate) on_clock: bool,
    /// The components that had a door.
    pub(crate) doors: HashSet<String>,
}

impl Script {
    pub(crate) fn new(recording: &Recording) -> Script {
        let mut script = Script {
            on_clock: recording.header.on_clock,
            doors: recording.header.doors.iter().cloned().collect(),
            ..Script::default()
        };
        for (nth, entry) in recording.entries.iter().enumerate() {
            match entry {
                Entry::Epoch(_) => {}
                Entry::Call(call) => {
                    script.positions.insert(call.transaction, nth);
                    let cancelled = call.cancelled_after.map(|after| (call.transaction, after));
                    script.cancelled_after.extend(cancelled);
                    let ended = call.timed_out.then(|| (call.transaction, call.clone()));
                    script.timed_out.extend(ended);
                }
                Entry::Loop(stopped) => {
                    let key = (stopped.composite.clone(), stopped.run, stopped.pass);
                    script.stopped.insert(key, stopped.budget);
                }
            }
        }
        script
    }

    /// Where a call is in the recording; those that are not there come last.
    pub(crate) fn position(&self, transaction: u64) -> usize {
        self.positions
            .get(&transaction)
            .copied()
            .unwrap_or(usize::MAX)
    }

    pub(crate) fn cancelled_after(&self, transaction: u64) -> Option<u32> {
        self.cancelled_after.get(&transaction).copied()
    }

    /// Ends a call that was ended because its time was over, as it was ended then; gives what was said. It is not
    /// made again: nobody knows how far it got, and without a clock it would not end. If the graph has no limit for
    /// the component any more, it is made: somebody wants to see what comes of that.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_again(&self, invocation: &mut Invocation<'_>) -> Option<String> {
        let call = self.timed_out.get(&invocation.transaction())?;
        let now = &invocation.env.plan.graph.components[invocation.component as usize];
        if now.id != call.component || now.execution.timeout.is_zero() {
            return None;
        }
        play(call.clone(), invocation)
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
    /// What is still to come.
    expected: VecDeque<Entry>,
    epochs: VecDeque<EpochEntry>,
    epoch: u64,
    /// How many entries were compared.
    compared: usize,
    edited: Option<Edited>,
    /// Nothing more is compared.
    is_over: bool,
    pub(crate) difference: Option<Difference>,
    /// Why the recorded run ended; none if the recording breaks off.
    pub(crate) reason: Option<StopReason>,
}

impl Playback {
    pub(crate) fn new(recording: &Recording) -> Playback {
        let epochs = recording.entries.iter().filter_map(|entry| match entry {
            Entry::Epoch(epoch) => Some(epoch.clone()),
            _ => None,
        });
        Playback {
            epochs: epochs.collect(),
            expected: recording.entries.iter().cloned().collect(),
            epoch: 0,
            compared: 0,
            edited: recording.edited.clone(),
            is_over: false,
            difference: None,
            reason: recording.end.as_ref().map(|end| end.reason),
        }
    }

    /// The next epoch; none after the last.
    pub(crate) fn next_epoch(&mut self) -> Option<EpochEntry> {
        self.epochs.pop_front()
    }

    /// Compares what has happened with what was recorded.
    pub(crate) fn compare(&mut self, entry: &Entry) {
        if self.difference.is_some() || self.is_over {
            return;
        }
        let expected = self.expected.pop_front();
        self.compared += 1;
        // If an epoch begins too early, what is missing is of the one before.
        if let (Entry::Epoch(epoch), Some(Entry::Epoch(_))) = (entry, &expected) {
            self.epoch = epoch.epoch;
        }
        if !expected
            .as_ref()
            .is_some_and(|expected| is_same(expected, entry))
        {
            self.differ(expected.as_ref(), Some(entry));
            return;
        }
        // What is played back does what its line says, so only the checksum tells that it said something else.
        let edited = self.edited.as_ref();
        if let Some(edited) = edited.filter(|edited| edited.entry + 1 == self.compared) {
            let line = edited.line;
            self.differ(expected.as_ref(), Some(entry));
            self.difference
                .iter_mut()
                .for_each(|difference| difference.edited_line = Some(line));
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
            && let Some(expected) = self.expected.pop_front()
        {
            self.differ(Some(&expected), None);
        }
        self.is_over = true;
    }

    fn differ(&mut self, recorded: Option<&Entry>, replayed: Option<&Entry>) {
        let call = [replayed, recorded]
            .into_iter()
            .flatten()
            .find_map(|entry| match entry {
                Entry::Call(call) => Some((call.component.clone(), call.transaction)),
                _ => None,
            });
        let (component, transaction) = call.unwrap_or_default();
        let line =
            |entry: Option<&Entry>| entry.map_or_else(String::new, |e| e.to_json().to_string());
        self.difference = Some(Difference {
            epoch: self.epoch,
            component,
            transaction,
            recorded: line(recorded),
            replayed: line(replayed),
            edited_line: None,
        });
    }
}

/// Whether two lines say the same. Values that only their users know are the same if their types are.
fn is_same(recorded: &Entry, replayed: &Entry) -> bool {
    recorded == replayed || recorded.to_json() == replayed.to_json()
}

/// Stands for a component that is not called: publishes what was recorded.
#[derive(Debug, Clone)]
pub(crate) struct PlayedBack {
    calls: Arc<Mutex<VecDeque<CallEntry>>>,
    reentrant: bool,
}

impl PlayedBack {
    pub(crate) fn new(recording: &Recording, component: &str) -> PlayedBack {
        let calls = recording.entries.iter().filter_map(|entry| match entry {
            Entry::Call(call) if call.component == component => Some(call.clone()),
            _ => None,
        });
        let mut reentrant = recording.header.reentrant.iter();
        PlayedBack {
            calls: Arc::new(Mutex::new(calls.collect())),
            reentrant: reentrant.any(|id| id == component),
        }
    }

    fn next(&self, transaction: u64) -> Option<CallEntry> {
        let mut calls = self.calls.lock();
        let place = calls
            .iter()
            .position(|call| call.transaction == transaction)?;
        calls.remove(place)
    }
}

impl Component for PlayedBack {
    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        Reentrant::execute(self, invocation)
    }

    fn reentrant(&mut self) -> Option<Arc<dyn Reentrant>> {
        self.reentrant
            .then(|| Arc::new(self.clone()) as Arc<dyn Reentrant>)
    }
}

impl Reentrant for PlayedBack {
    fn execute(&self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        // One that is not in the recording is a difference, which is found when it is compared.
        let wanted = invocation.transaction();
        let Some(call) = self.next(wanted) else {
            return Ok(());
        };
        for output in call.outputs.iter().filter(|o| o.edge != u32::MAX) {
            if let Some(name) = output.payload.unrecorded() {
                return Err(Failure::new(format!(
                    "a value of type {name} cannot be recorded: publish JSON, text, bytes or numbers at the boundary"
                )));
            }
        }
        match play(call, invocation) {
            Some(why) => Err(Failure::new(why)),
            None => Ok(()),
        }
    }
}

/// Does what a call did then; gives why it failed.
fn play(call: CallEntry, invocation: &mut Invocation<'_>) -> Option<String> {
    let mut staged = Vec::with_capacity(call.outputs.len());
    // What went to an edge that is not there any more goes nowhere.
    for output in call.outputs.into_iter().filter(|o| o.edge != u32::MAX) {
        staged.push(Staged {
            payload: output.payload,
            edge: output.edge,
            publish: output.publish,
            transaction: call.transaction,
            ..invocation.staged(output.event_time)
        });
    }
    let out = &mut *invocation.out;
    out.staged = staged;
    out.state = call
        .state
        .into_iter()
        .map(|(key, value)| (key.into(), value))
        .collect();
    out.report = call.report.map(|(converged, residual, reason)| LoopReport {
        converged,
        residual,
        reason,
    });
    out.refused = call.refused;
    out.finished = call.finished;
    out.held = call.held;
    out.observed_cancel = call.cancelled_after.is_some();
    out.cancelled_after = call.cancelled_after;
    out.timed_out = call.timed_out;
    call.failed
}

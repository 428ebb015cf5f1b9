//! How a run is to go.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_sync::CancellationToken;

use crate::observe::Observer;
use crate::run::state::store::Store;

/// How a run is to go.
///
/// ```
/// use windlass_graph::RunOptions;
///
/// let options = RunOptions { steps: Some(10), ..RunOptions::default() };
/// assert!(!options.until_idle);
/// ```
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// How many epochs; none or 0: 1, or 1000 with `until_idle` (no limit if things may come from
    /// outside, and counted from the end of the files that are read), or no limit with `duration`.
    pub steps: Option<u64>,
    /// It begins no epoch after this time.
    pub duration: Option<Duration>,
    /// It ends after the first epoch in which nothing ran and no message waits for time to pass.
    pub until_idle: bool,
    /// Ends it: no new epoch begins, and invocations see it.
    pub stop: CancellationToken,
    /// Whether it is traced.
    pub trace: bool,
    /// How many events the trace holds.
    pub trace_capacity: usize,
    /// How much of the order of invocations is kept.
    pub order_capacity: usize,
    /// Whether the duration of each epoch is kept, up to `order_capacity` of them.
    pub epoch_times: bool,
    /// Where to go on.
    pub restore: Option<Snapshot>,
    /// Whether components are reset before the first epoch.
    pub reset: bool,
    /// Whether a snapshot is taken at the end.
    pub snapshot: bool,
    /// Whether regions without a path between them overlap, where their lanes have threads. The
    /// results are the same.
    pub overlap: bool,
    /// Lanes of type `manual_step` that run in every epoch, as if they were stepped.
    pub step_lanes: Vec<String>,
    /// Where it is recorded, to be replayed by [`Prepared::replay`](crate::Prepared::replay).
    pub record: Option<Record>,
    /// The observer that gets events of the run.
    pub observer: Option<Observer>,
    /// How long all components together have at the end for what they have to end first.
    pub drain: Duration,
    /// How long a run has to end, once `stop` is cancelled or `duration` is over. An invocation
    /// that is under way has half of it; then it is ended by force, if its type can be preempted,
    /// and named ([`RunResult::forced`](crate::RunResult::forced)). The rest is for draining and
    /// deactivating. A component that cannot be preempted is waited for:
    /// [`Control::under_way`](crate::run::Control::under_way) names it.
    pub stop_within: Duration,
}

/// What a run goes on from: what its components and its state store held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What each component that had something to keep gave.
    pub components: BTreeMap<String, Value>,
    /// The state store.
    pub store: Store,
}

/// Where a run is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The folder, which is made if it is not there.
    pub folder: PathBuf,
    /// The text of the graph file, to be kept with it.
    pub graph_text: Option<String>,
    /// How many bytes it may have; what comes later is not recorded, and the run says so.
    pub limit: u64,
}

impl Record {
    /// In this folder.
    pub fn to(folder: impl Into<PathBuf>) -> Record {
        Record {
            folder: folder.into(),
            graph_text: None,
            limit: RECORD_LIMIT,
        }
    }

    /// With the text of the graph file.
    pub fn graph_text(mut self, text: impl Into<String>) -> Record {
        self.graph_text = Some(text.into());
        self
    }
}

/// How many bytes a recording has at most unless one says otherwise.
const RECORD_LIMIT: u64 = 1 << 30;
/// How many events a trace holds unless one says otherwise.
const TRACE_CAPACITY: usize = 1 << 18;
/// How many invocations the order of a run holds unless one says otherwise.
const ORDER_CAPACITY: usize = 1 << 16;
/// How long components have at the end unless one says otherwise.
const DRAIN: Duration = Duration::from_secs(5);
/// How long a run has to end unless one says otherwise.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// How many epochs a run has at most that ends when it is idle, unless one says otherwise.
const IDLE_STEPS: u64 = 1000;

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            steps: None,
            duration: None,
            until_idle: false,
            stop: CancellationToken::new(),
            trace: false,
            trace_capacity: TRACE_CAPACITY,
            order_capacity: ORDER_CAPACITY,
            epoch_times: false,
            restore: None,
            reset: false,
            snapshot: false,
            overlap: true,
            step_lanes: Vec::new(),
            record: None,
            observer: None,
            drain: DRAIN,
            stop_within: STOP_WITHIN,
        }
    }
}

impl RunOptions {
    /// How long draining may take: less than `drain` if the run was asked to stop.
    pub(crate) fn drain_limit(&self) -> Duration {
        match self.stop.is_cancelled() {
            true => self.drain.min(self.stop_within * 2 / 5),
            false => self.drain,
        }
    }

    /// So many epochs.
    pub fn steps(steps: u64) -> RunOptions {
        RunOptions {
            steps: Some(steps),
            ..RunOptions::default()
        }
    }

    /// With a trace.
    pub fn traced(mut self) -> RunOptions {
        self.trace = true;
        self
    }

    /// Whether nothing but the graph itself, or the bound for graphs that are never idle, ends the
    /// run.
    pub(crate) fn is_bounded_by_idling(&self) -> bool {
        self.until_idle && self.steps.is_none_or(|steps| steps == 0)
    }

    /// How many epochs there may be; `open`: things may come from outside.
    pub(crate) fn most_epochs(&self, open: bool) -> u64 {
        match self.steps.filter(|&steps| steps > 0) {
            Some(steps) => steps,
            None if self.until_idle && !open => IDLE_STEPS,
            None if self.until_idle => u64::MAX,
            None if self.duration.is_some() => u64::MAX,
            None => 1,
        }
    }
}

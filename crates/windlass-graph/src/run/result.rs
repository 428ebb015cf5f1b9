//! What came of a run.

use std::fmt;

use crate::run::exec::grants::LaneGrant;
use crate::run::options::Snapshot;
use crate::run::sinks::health::HealthEvent;
use crate::run::sinks::losses::Loss;
use crate::run::sinks::metrics::Metrics;
use crate::run::sinks::recorder::RecordingEnd;
use crate::run::sinks::trace::Trace;
use windlass_plan::model::named;

/// What came of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunResult {
    /// Why it ended.
    pub stop_reason: StopReason,
    /// How many invocations there were.
    pub ticks: u64,
    /// How many epochs there were.
    pub epochs: u64,
    /// The components in the order in which they ran; the first `order_capacity` of them.
    pub order: Vec<String>,
    /// What each epoch took, in nanoseconds, if that was asked for.
    pub epoch_times: Vec<u64>,
    /// What was counted.
    pub metrics: Metrics,
    /// What was dropped, refused or not delivered.
    pub losses: Vec<Loss>,
    /// What went wrong.
    pub errors: Vec<RuntimeError>,
    /// The components that were ended by force, because the run had to stop and they did not
    /// return.
    pub forced: Vec<String>,
    /// What went wrong without an error.
    pub health: Vec<HealthEvent>,
    /// What happened, if it was traced.
    pub trace: Trace,
    /// What to go on from, if it was asked for.
    pub snapshot: Option<Snapshot>,
    /// What the threads of lanes with OS attributes were found to have; and what was refused.
    pub lane_grants: Vec<LaneGrant>,
    /// What a replay found.
    pub(crate) replay_end: Option<RecordingEnd>,
}

named! {
    /// Why a run ended.
    #[derive(Default)]
    pub enum StopReason {
        /// It has not begun.
        #[default]
        NotStarted = "not_started",
        /// All its epochs are over.
        TickBound = "tick_bound",
        /// Its time is over.
        DurationBound = "duration_bound",
        /// There was nothing to do.
        Idle = "idle",
        /// The run was asked to stop.
        StopRequested = "stop_requested",
        /// A component or the run itself failed.
        Error = "error",
    }
}

named! {
    /// Which part of a run failed.
    pub enum ErrorCode {
        /// The graph is not valid.
        Validation = "validation",
        /// A dry run.
        DryRun = "dry_run",
        /// A call of `configure` failed.
        ComponentConfigure = "component_configure",
        /// A call of `activate` failed.
        ComponentActivate = "component_activate",
        /// A call of `restore` failed.
        ComponentRestore = "component_restore",
        /// A call of `reset` failed.
        ComponentReset = "component_reset",
        /// A call of `snapshot` failed.
        ComponentSnapshot = "component_snapshot",
        /// A call of `deactivate` failed.
        ComponentDeactivate = "component_deactivate",
        /// A call of `execute` failed.
        ComponentExecute = "component_execute",
        /// The run itself failed.
        Runtime = "runtime",
        /// An observer failed.
        ObserverFailure = "observer_failure",
    }
}

/// Something that failed in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeError {
    /// The part of the run: the name of the call, or `epoch`.
    pub phase: String,
    /// The id of the component; may be empty.
    pub component_id: String,
    /// The id of its lane; may be empty.
    pub lane: String,
    /// What happened, for people.
    pub message: String,
    /// Which part of the run failed.
    pub code: ErrorCode,
    /// The id of the run.
    pub trace_id: String,
    /// Whether it ended the run.
    pub fatal: bool,
}

impl RunResult {
    /// Whether it ended without an error that ends runs.
    pub fn is_ok(&self) -> bool {
        self.stop_reason != StopReason::Error && !self.errors.iter().any(|error| error.fatal)
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.phase, self.code)?;
        if !self.component_id.is_empty() {
            write!(f, " {}", self.component_id)?;
        }
        write!(f, ": {}", self.message)
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

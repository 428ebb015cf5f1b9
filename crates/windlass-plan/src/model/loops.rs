//! Composite loops: cycles that are run as one.

use std::time::Duration;

use crate::named;

/// One of `composite_loops`.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositeLoop {
    /// Its id, and that of its region.
    pub id: String,
    /// The ids of its members.
    pub components: Vec<String>,
    /// How it iterates.
    pub policy: LoopPolicy,
}

/// How a loop is run: its `loop_policy`.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopPolicy {
    /// Its `type` in the file.
    pub kind: LoopKind,
    /// What it may take altogether.
    pub budget: Duration,
    /// How often it goes round; 0 = 1.
    pub max_iterations: u64,
    /// When it is done before that.
    pub convergence: Option<Convergence>,
    /// It is done when a component reports no more than this.
    pub residual_threshold: Option<f64>,
    /// What becomes of the outputs of a solver that did not converge; none: they are discarded.
    pub partial_success: Option<PartialSuccess>,
    /// Of async_task: how many at once; 0 = 1.
    pub max_inflight: usize,
    /// Of async_task and coalesced_event: what happens to inputs that come too early; a name of an
    /// overflow policy.
    pub drop_policy: Option<super::Overflow>,
    /// The least time between two runs of the loop.
    pub min_interval: Duration,
}

named! {
    /// What a loop is.
    pub enum LoopKind {
        /// Iterates until it converges; its outputs are committed in any case.
        FixedPoint = "fixed_point",
        /// One pass, whose outputs are committed together or not at all.
        Transaction = "transaction",
        /// Iterates until it converges; otherwise see `partial_success`.
        SolverIteration = "solver_iteration",
        /// Takes the newest of each input.
        CoalescedEvent = "coalesced_event",
        /// Runs beside the epochs.
        AsyncTask = "async_task",
    }
}

named! {
    /// When a loop is done.
    pub enum Convergence {
        /// After one pass.
        SinglePass = "single_pass",
        /// After one pass.
        AfterFirstIteration = "after_first_iteration",
        /// After one pass.
        Always = "always",
        /// When a pass's outputs equal those of the pass before.
        StableState = "stable_state",
    }
}

named! {
    /// What becomes of the outputs of a solver that did not converge.
    pub enum PartialSuccess {
        /// They are committed.
        CommitOutputs = "commit_outputs",
        /// They are discarded.
        DiscardOutputs = "discard_outputs",
        /// The run ends with an error.
        FailRun = "fail_run",
    }
}

impl LoopPolicy {
    /// A policy with every default.
    pub fn new(kind: LoopKind) -> LoopPolicy {
        LoopPolicy {
            kind,
            budget: Duration::ZERO,
            max_iterations: 0,
            convergence: None,
            residual_threshold: None,
            partial_success: None,
            max_inflight: 0,
            drop_policy: None,
            min_interval: Duration::ZERO,
        }
    }
}

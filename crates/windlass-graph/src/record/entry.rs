//! What is in a recording.

use windlass_plan::model::Config;
use windlass_value::Payload;

/// A line of a recording, between the first and the last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Epoch(EpochEntry),
    Call(CallEntry),
    Loop(LoopEntry),
}

/// An epoch begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct EpochEntry {
    pub(crate) epoch: u64,
    /// The lanes' clocks and whether they are due; empty if time is simulated and all are.
    pub(crate) lanes: Vec<(u64, bool)>,
    /// What was seen at the doors of components, by id.
    pub(crate) doors: Vec<(String, Seen)>,
    /// New configurations, a list for each transaction.
    pub(crate) transactions: Vec<Vec<(String, Config)>>,
    /// Loops that came back, if time is real.
    pub(crate) joined: Vec<String>,
}

/// What was seen at a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) woken: bool,
    pub(crate) held: bool,
}

/// An invocation has ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct CallEntry {
    pub(crate) component: String,
    pub(crate) transaction: u64,
    /// What it published.
    pub(crate) outputs: Vec<Output>,
    /// What it wrote to the state store.
    pub(crate) state: Vec<(String, Payload)>,
    /// What it told its loop: whether it converged, the residual, why.
    pub(crate) report: Option<(bool, Option<f64>, String)>,
    /// Edges that did not take what it published.
    pub(crate) refused: Vec<u32>,
    /// Why it failed.
    pub(crate) failed: Option<String>,
    /// It said that nothing more will come of it.
    pub(crate) finished: bool,
    /// It did not want to be called for now.
    pub(crate) held: bool,
    /// How often it asked whether it should come to an end before the answer was yes.
    pub(crate) cancelled_after: Option<u32>,
    /// It was ended: its time was over.
    pub(crate) timed_out: bool,
}

/// One item of a publish.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Output {
    pub(crate) edge: u32,
    /// Which publish of the invocation it is of.
    pub(crate) publish: u32,
    pub(crate) payload: Payload,
    pub(crate) event_time: Option<i64>,
}

/// A loop was stopped by something that is not in the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoopEntry {
    pub(crate) composite: String,
    /// Which run of the loop, from 0.
    pub(crate) run: u64,
    /// After which pass, from 0.
    pub(crate) pass: u64,
    /// Whether its time was over; otherwise the run was asked to stop.
    pub(crate) budget: bool,
}

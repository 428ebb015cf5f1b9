//! A VM as plain data.

use crate::placement::Placement;
use crate::reason::ReasonKind;

/// A VM at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VmSnapshot {
    /// Who decides which guest runs.
    pub placement: Placement,
    /// Guests inside a step.
    pub active_vm_tasks: usize,
    /// Guests that run or are ready to.
    pub ready_or_running: usize,
    /// How many waits there are of each kind.
    pub parked: Vec<(ReasonKind, usize)>,
    /// Steps so far.
    pub steps: u64,
    /// How often a guest was asked to make room.
    pub preemptions_requested: u64,
    /// How often one did.
    pub preemptions_taken: u64,
    /// Guests that do not come back from a function of the host, by name.
    pub stuck: Vec<String>,
    /// How far a replay is.
    pub replay: Option<ReplayPosition>,
}

impl VmSnapshot {
    /// How many waits there are of this kind.
    pub fn parked_on(&self, kind: ReasonKind) -> usize {
        let found = self.parked.iter().find(|(of, _)| *of == kind);
        found.map_or(0, |(_, parked)| *parked)
    }
}

/// How far a replay is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayPosition {
    /// The line of the recording that comes next, from 1.
    pub line: usize,
    /// How many there are.
    pub lines: usize,
}

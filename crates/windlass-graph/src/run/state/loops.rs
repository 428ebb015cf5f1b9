//! The composite loops of a run: when each ran last, how often, and which run beside the epochs.

use crate::run::exec::async_loop::AsyncLoops;
use crate::run::state::tables::nanos;
use windlass_plan::compile::Plan;

/// The composite loops of a run, by their place in the graph.
#[derive(Default)]
pub(crate) struct Loops {
    by_loop: Vec<LoopState>,
    /// Those that run beside the epochs.
    beside: AsyncLoops,
}

/// What a loop remembers from run to run.
#[derive(Debug, Default)]
struct LoopState {
    last_run: Option<u64>,
    runs: u64,
}

impl Loops {
    pub(crate) fn new(plan: &Plan) -> Loops {
        let loops = plan.graph.loops.iter();
        Loops {
            by_loop: loops.map(|_| LoopState::default()).collect(),
            beside: AsyncLoops::default(),
        }
    }

    /// Returns the loops that run beside the epochs.
    pub(crate) fn beside(&self) -> &AsyncLoops {
        &self.beside
    }

    pub(crate) fn beside_mut(&mut self) -> &mut AsyncLoops {
        &mut self.beside
    }

    /// Returns when a loop that waits between its runs may run again.
    pub(crate) fn next_wake(&self, plan: &Plan, composite: usize) -> Option<u64> {
        let interval = nanos(plan.graph.loops[composite].policy.min_interval);
        let last = self.by_loop[composite].last_run?;
        (interval > 0).then(|| last.saturating_add(interval))
    }

    /// Returns how often a loop has run.
    pub(crate) fn runs(&self, composite: usize) -> u64 {
        self.by_loop[composite].runs
    }

    /// Notes that a loop has ended, on the clock of its lane.
    pub(crate) fn note_run(&mut self, composite: usize, now: u64) {
        let state = &mut self.by_loop[composite];
        state.last_run = Some(now);
        state.runs += 1;
    }

    /// Takes a loop out, for a part of the run that runs beside it.
    pub(crate) fn split_off(&mut self, composite: Option<usize>) -> Loops {
        let mut part = Loops {
            by_loop: self.by_loop.iter().map(|_| LoopState::default()).collect(),
            beside: AsyncLoops::default(),
        };
        part.take_from(self, composite);
        part
    }

    /// Takes a loop from another part of the run.
    pub(crate) fn take_from(&mut self, other: &mut Loops, composite: Option<usize>) {
        if let Some(composite) = composite {
            self.by_loop[composite] = std::mem::take(&mut other.by_loop[composite]);
        }
    }
}

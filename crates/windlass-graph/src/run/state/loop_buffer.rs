//! What a running loop has published and not committed.
//!
//! While a loop runs, what its members publish to each other is committed at once, and what goes to
//! the outside is held. When it ends that is committed, or thrown away.

use crate::component::{LoopReport, Staged};
use windlass_value::Payload;

/// What a running loop has published and not committed, and what it knows of its passes.
#[derive(Debug)]
pub(crate) struct LoopBuffer {
    region: usize,
    /// What goes to the outside.
    held: Vec<Staged>,
    /// The last report of this pass.
    report: Option<LoopReport>,
    /// Whether a member has failed.
    failed: bool,
    /// What was published in this pass and in the one before, if the loop compares them.
    passes: Option<[Vec<(u32, Payload)>; 2]>,
}

impl LoopBuffer {
    /// `compares`: whether passes are compared.
    pub(crate) fn new(region: usize, compares: bool) -> LoopBuffer {
        LoopBuffer {
            region,
            held: Vec::new(),
            report: None,
            failed: false,
            passes: compares.then(Default::default),
        }
    }

    /// Whether an edge between these regions leads out of the loop.
    pub(crate) fn holds(&self, region_from: usize, region_to: usize) -> bool {
        region_from == self.region && region_to != self.region
    }

    /// Keeps what a member publishes to the outside.
    pub(crate) fn hold(&mut self, item: Staged) {
        self.held.push(item);
    }

    /// Begins a pass.
    pub(crate) fn begin_pass(&mut self) {
        self.report = None;
        if let Some([this, last]) = &mut self.passes {
            std::mem::swap(this, last);
            this.clear();
        }
    }

    /// Remembers what a pass has published, if passes are compared.
    pub(crate) fn remember(&mut self, items: &[Staged]) {
        if let Some([this, _]) = &mut self.passes {
            this.extend(items.iter().map(|item| (item.edge, item.payload.clone())));
        }
    }

    /// Whether this pass has published the same as the one before.
    pub(crate) fn is_stable(&self) -> bool {
        self.passes
            .as_ref()
            .is_some_and(|[this, last]| this == last)
    }

    /// Keeps what a member has found.
    pub(crate) fn set_report(&mut self, report: LoopReport) {
        self.report = Some(report);
    }

    /// Returns the last report of this pass.
    pub(crate) fn report(&self) -> Option<&LoopReport> {
        self.report.as_ref()
    }

    /// Notes that a member has failed.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Whether a member has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Throws away what is held; returns how many items.
    pub(crate) fn discard(&mut self) -> u64 {
        let discarded = self.held.len() as u64;
        self.held.clear();
        discarded
    }

    /// Returns what is held.
    pub(crate) fn into_held(self) -> Vec<Staged> {
        self.held
    }
}

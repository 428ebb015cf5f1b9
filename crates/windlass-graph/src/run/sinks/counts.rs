//! What a run counts, apart from channels and triggers.

use crate::run::exec::loop_passes::LoopStop;
use crate::run::sinks::sink::{
    CallEnd, CallsAtOnce, Commit, CommitRefusal, ConfigEnd, Deferral, LifecycleCall, LifecycleKind,
    LoopDiscard, LoopEnd, LoopResidual, PassEnd, Sink, StoreCommit,
};
use windlass_plan::compile::{Plan, Region};
use windlass_plan::model::EdgeKind;

/// What a run counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) components: Vec<ComponentCounts>,
    pub(crate) publication: PublicationCounts,
    pub(crate) loops: Vec<LoopCounts>,
    pub(crate) run: RunCounts,
}

impl Counts {
    pub(crate) fn of(plan: &Plan) -> Counts {
        Counts {
            components: vec![ComponentCounts::default(); plan.graph.components.len()],
            loops: vec![LoopCounts::default(); plan.graph.loops.len()],
            ..Counts::default()
        }
    }

    /// Takes in what the part of the run has counted that ran this region beside the epochs.
    pub(crate) fn merge(&mut self, other: &Counts, region: &Region) {
        for &component in &region.components {
            self.components[component].add(&other.components[component]);
        }
        if let Some(composite) = region.composite_loop {
            self.loops[composite].add(&other.loops[composite]);
        }
        self.publication.add(&other.publication);
        self.run.isolated += other.run.isolated;
        self.run.deactivated += other.run.deactivated;
    }
}

impl Sink for Counts {
    #[inline]
    fn call_end(&mut self, event: &CallEnd<'_>) {
        let (out, duration) = (event.out, event.duration());
        let counts = &mut self.components[event.component];
        counts.execution += 1;
        counts.last_duration_ns = duration;
        counts.max_duration_ns = counts.max_duration_ns.max(duration);
        counts.max_in_flight = counts.max_in_flight.max(1);
        if event.is_over_budget() {
            counts.budget_overrun += 1;
            counts.timeout_budget_exceeded += 1;
        }
        counts.cancellation_requested += u64::from(event.was_asked_to_cancel());
        counts.cancellation_observed += u64::from(out.observed_cancel);
        counts.timeout += u64::from(out.timed_out);
        let staged = out.staged.len() as u64;
        match event.finished.failed.is_some() {
            true => {
                counts.error += 1;
                self.publication.error_discarded += staged;
            }
            false => {
                counts.unconnected_publish += u64::from(out.unconnected);
                self.publication.staged += staged;
            }
        }
    }

    fn calls_at_once(&mut self, event: &CallsAtOnce) {
        let counts = &mut self.components[event.component];
        counts.max_in_flight = counts.max_in_flight.max(event.invocations);
    }

    #[inline]
    fn commit(&mut self, event: &Commit<'_>) {
        self.publication.committed += 1;
        self.publication.state_committed += u64::from(event.kind == EdgeKind::State);
    }

    fn deferral(&mut self, event: &Deferral) {
        match event.kind {
            EdgeKind::Async => self.publication.asynchronous += 1,
            EdgeKind::State => self.publication.state += 1,
            EdgeKind::Delay | EdgeKind::Immediate => self.publication.delayed += 1,
        }
    }

    fn commit_refusal(&mut self, event: &CommitRefusal) {
        self.publication.failed_commit += event.items as u64;
    }

    fn store_commit(&mut self, _: &StoreCommit) {
        self.run.store_commits += 1;
    }

    fn lifecycle_call(&mut self, event: &LifecycleCall) {
        let count = match event.kind {
            LifecycleKind::Activate => &mut self.run.activated,
            LifecycleKind::Deactivate => &mut self.run.deactivated,
            LifecycleKind::Isolate => &mut self.run.isolated,
            LifecycleKind::Restore => &mut self.run.restored,
            LifecycleKind::Reset => &mut self.run.reset,
            LifecycleKind::Snapshot => &mut self.run.snapshots,
            LifecycleKind::ValidateConfig => &mut self.run.config_validated,
            LifecycleKind::ApplyConfig => &mut self.run.config_applied,
            LifecycleKind::RollBackConfig => &mut self.run.config_rolled_back,
            // Counted once for the transaction.
            LifecycleKind::CommitConfig => return,
        };
        *count += 1;
    }

    fn config_end(&mut self, _: &ConfigEnd) {
        self.run.config_committed += 1;
    }

    fn pass_end(&mut self, event: &PassEnd) {
        // A pass in which nothing ran is none, and one that failed is counted as an error.
        let counts = event.ran > 0 && !event.failed;
        self.loops[event.composite].iterations += u64::from(counts);
    }

    fn loop_residual(&mut self, event: &LoopResidual) {
        self.loops[event.composite].residual = Some(event.residual);
    }

    fn loop_end(&mut self, event: &LoopEnd) {
        let counts = &mut self.loops[event.composite];
        counts.runs += 1;
        counts.stop_reason = Some(event.stop.reason());
        match event.stop {
            LoopStop::Converged(_) => counts.converged += 1,
            LoopStop::MaxIterations => counts.max_iterations_hit += 1,
            LoopStop::BudgetOverrun => counts.budget_overrun += 1,
            LoopStop::Cancelled => {
                counts.cancellation_requested += 1;
                counts.cancellation_observed += 1;
            }
            LoopStop::ComponentError => counts.error += 1,
        }
    }

    fn loop_discard(&mut self, event: &LoopDiscard) {
        self.publication.composite_discarded += event.items;
        if let Some(composite) = event.composite {
            self.loops[composite].output_discarded += event.items;
        }
    }
}

/// Counts of a component.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ComponentCounts {
    pub(crate) execution: u64,
    pub(crate) error: u64,
    pub(crate) last_duration_ns: u64,
    pub(crate) max_duration_ns: u64,
    pub(crate) budget_overrun: u64,
    pub(crate) cancellation_requested: u64,
    pub(crate) cancellation_observed: u64,
    pub(crate) timeout_budget_exceeded: u64,
    pub(crate) timeout: u64,
    pub(crate) max_in_flight: u64,
    pub(crate) unconnected_publish: u64,
}

/// Counts of a lane.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LaneCounts {
    pub(crate) ticks: u64,
    pub(crate) completed: u64,
    pub(crate) overruns: u64,
    pub(crate) skipped_ticks: u64,
    pub(crate) deadline_misses: u64,
    pub(crate) max_lateness_ns: u64,
    pub(crate) queue_depth: u64,
    pub(crate) workers: u64,
    pub(crate) last_callback_ns: u64,
    pub(crate) blocked_ns: u64,
    pub(crate) jitter_ns: u64,
    pub(crate) active: u64,
    pub(crate) in_flight: u64,
    pub(crate) rejected: u64,
    /// By class, the highest first.
    pub(crate) completed_by_priority: [u64; 4],
    pub(crate) low_priority_rejected: u64,
    pub(crate) starvation_guard: u64,
}

/// Counts of what is published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PublicationCounts {
    pub(crate) staged: u64,
    pub(crate) committed: u64,
    pub(crate) delayed: u64,
    pub(crate) state: u64,
    pub(crate) state_committed: u64,
    pub(crate) asynchronous: u64,
    pub(crate) failed_commit: u64,
    pub(crate) composite_discarded: u64,
    /// Thrown away because the invocation failed.
    pub(crate) error_discarded: u64,
}

/// Counts of an async edge. The run also reads from `in_flight` whether there is room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AsyncCounts {
    pub(crate) accepted: u64,
    pub(crate) rejected: u64,
    pub(crate) dropped: u64,
    pub(crate) overwrite: u64,
    pub(crate) in_flight: u64,
    pub(crate) max_in_flight: u64,
    pub(crate) completed: u64,
    pub(crate) cancelled: u64,
}

/// Counts of a composite loop.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LoopCounts {
    pub(crate) runs: u64,
    pub(crate) iterations: u64,
    pub(crate) converged: u64,
    pub(crate) budget_overrun: u64,
    pub(crate) max_iterations_hit: u64,
    pub(crate) error: u64,
    pub(crate) cancellation_requested: u64,
    pub(crate) cancellation_observed: u64,
    pub(crate) output_discarded: u64,
    pub(crate) residual: Option<f64>,
    pub(crate) stop_reason: Option<&'static str>,
}

/// Counts of the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunCounts {
    pub(crate) config_validated: u64,
    pub(crate) config_applied: u64,
    pub(crate) config_rolled_back: u64,
    pub(crate) config_committed: u64,
    pub(crate) store_commits: u64,
    pub(crate) activated: u64,
    pub(crate) deactivated: u64,
    pub(crate) restored: u64,
    pub(crate) reset: u64,
    pub(crate) snapshots: u64,
    pub(crate) isolated: u64,
}

macro_rules! add {
    ($Counts:ident { $( $sum:ident ),* } $( max { $( $max:ident ),* } )? $( last { $( $last:ident ),* } )?) => {
        impl $Counts {
            /// Takes in what another part of the run has counted.
            pub(crate) fn add(&mut self, other: &$Counts) {
                $( self.$sum += other.$sum; )*
                $( $( self.$max = self.$max.max(other.$max); )* )?
                $( $( self.$last = other.$last; )* )?
            }
        }
    };
}

add!(ComponentCounts {
    execution, error, budget_overrun, cancellation_requested, cancellation_observed, timeout_budget_exceeded,
    timeout
} max { max_duration_ns, max_in_flight } last { last_duration_ns });
add!(PublicationCounts {
    staged,
    committed,
    delayed,
    state,
    state_committed,
    asynchronous,
    failed_commit,
    composite_discarded,
    error_discarded
});
add!(LoopCounts {
    runs, iterations, converged, budget_overrun, max_iterations_hit, error, cancellation_requested,
    cancellation_observed, output_discarded
} last { residual, stop_reason });

impl LaneCounts {
    /// Takes in what another part of the run has counted; ticks are the run's own.
    pub(crate) fn add(&mut self, other: &LaneCounts) {
        self.completed += other.completed;
        self.rejected += other.rejected;
        self.low_priority_rejected += other.low_priority_rejected;
        self.starvation_guard += other.starvation_guard;
        self.queue_depth = self.queue_depth.max(other.queue_depth);
        self.active = self.active.max(other.active);
        self.in_flight = self.in_flight.max(other.in_flight);
        if other.completed > 0 {
            self.last_callback_ns = other.last_callback_ns;
        }
        for (mine, its) in self
            .completed_by_priority
            .iter_mut()
            .zip(other.completed_by_priority)
        {
            *mine += its;
        }
    }
}

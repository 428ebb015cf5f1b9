//! What a run counts, apart from channels and triggers.

/// Of a component.
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

/// Of a lane.
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

/// Of what is published.
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

/// Of an async edge.
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

/// Of a composite loop.
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

/// Of the whole run.
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
add!(AsyncCounts {
    accepted, rejected, dropped, overwrite, in_flight, completed, cancelled
} max { max_in_flight });

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

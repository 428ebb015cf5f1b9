//! A plan as JSON, for tools: what `windlass graph plan` prints.

use serde_json::{Map, Value, json};

use super::Plan;
use crate::model::{BoundaryRole, CompositeLoop, Lane, LaneKind};

/// The version of the scheduler's contract that a plan is made for.
const SCHEDULER_CONTRACT_VERSION: &str = "0.2";

impl Plan {
    /// The plan as JSON with sorted keys. It depends on the graph alone, never on the machine.
    ///
    /// `role` gives the boundary role of a component type, for components that leave theirs out.
    pub fn to_json(&self, role: impl Fn(&str) -> Option<BoundaryRole>) -> Value {
        let graph = &self.graph;
        json!({
            "graph": graph.name,
            "kind": graph.kind.name(),
            "schema_version": self.graph.schema_version,
            "scheduler_contract_version": SCHEDULER_CONTRACT_VERSION,
            "components": graph.components.iter().map(|c| json!({
                "id": c.id,
                "type": c.type_name,
                "lane": c.execution.lane,
                "boundary_role": c.boundary.role
                    .or_else(|| role(&c.type_name))
                    .unwrap_or_default()
                    .name(),
                "boundary_descriptor": c.boundary.descriptor,
            })).collect::<Vec<_>>(),
            "edges": graph.edges.iter().map(|e| json!({
                "id": e.id,
                "from": e.from.to_string(),
                "to": e.to.to_string(),
                "kind": e.kind.name(),
                "mode": e.policy.mode.name(),
                "capacity": e.policy.capacity,
                "overflow": e.policy.overflow.name(),
                "max_inflight": e.policy.max_inflight,
                "copy_policy": e.policy.copy_policy.name(),
                "readers": e.policy.readers.name(),
                "slow_reader_drop_risk": e.policy.slow_reader_drop_risk(),
            })).collect::<Vec<_>>(),
            "hierarchy": graph.hierarchy.iter().map(|scope| json!({
                "id": scope.id,
                "components": scope.components,
                "edges": scope.edges,
                "composite_loops": scope.loops,
                "expansion": "compile_time_namespace",
            })).collect::<Vec<_>>(),
            "compiled_regions": self.order.iter().map(|&r| self.region_json(r)).collect::<Vec<_>>(),
            "region_order": self.region_order(),
            "component_region": graph.components.iter().zip(&self.region_of)
                .map(|(c, &region)| (c.id.clone(), json!(self.regions[region].id)))
                .collect::<Map<_, _>>(),
            "lane_capabilities": graph.lanes.iter().map(lane_json).collect::<Vec<_>>(),
        })
    }

    fn region_json(&self, place: usize) -> Value {
        let region = &self.regions[place];
        let ids = |places: &[usize]| -> Vec<&str> {
            places
                .iter()
                .map(|&other| self.regions[other].id.as_str())
                .collect()
        };
        let composite = region.composite_loop.map(|l| &self.graph.loops[l]);
        json!({
            "id": region.id,
            "kind": if composite.is_some() { "composite_loop" } else { "component" },
            "components": region.components.iter()
                .map(|&c| self.graph.components[c].id.as_str())
                .collect::<Vec<_>>(),
            "incoming_regions": ids(&region.incoming),
            "outgoing_regions": ids(&region.outgoing),
            "loop_policy": composite.map(loop_json),
        })
    }
}

fn loop_json(composite: &CompositeLoop) -> Value {
    let policy = &composite.policy;
    json!({
        "type": policy.kind.name(),
        "budget_ms": millis(policy.budget),
        "max_iterations": policy.max_iterations.max(1),
        "convergence": policy.convergence.map_or("", |c| c.name()),
        "residual_threshold": policy.residual_threshold,
        "partial_success": policy.partial_success.map(|p| p.name()),
        "max_inflight": policy.max_inflight,
        "drop_policy": policy.drop_policy.map(|d| d.name()),
        "min_interval_ms": millis(policy.min_interval),
    })
}

/// A duration in milliseconds, as files write them.
pub(crate) fn millis(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

const EVENT_LOOP: &[&str] = &[
    "deterministic_region_order",
    "bounded_runner_stop_checks",
    "runtime_owned_publication_commit",
    "runtime_priority_ordering",
    "os_thread_attributes",
    "cooperative_cancellation",
    "timeout_budget_observation",
];
const FIXED_RATE: &[&str] = &[
    "bounded_simulated_ticks",
    "opt_in_wall_clock_cadence",
    "overrun_metrics",
    "jitter_metrics",
    "max_lateness_metrics",
    "overrun_policy",
    "independent_lane_rates",
    "deadline_miss_action",
    "os_thread_attributes",
    "runtime_priority_ordering",
    "cooperative_cancellation",
    "timeout_budget_observation",
];
const THREAD_POOL: &[&str] = &[
    "persistent_worker_lifecycle",
    "bounded_priority_queue",
    "queue_admission",
    "overflow_policy",
    "non_reentrant_serialization",
    "priority_queue",
    "starvation_aging",
    "parallel_regions",
    "os_thread_attributes",
    "cooperative_cancellation",
    "timeout_budget_observation",
    "worker_id_trace",
    "batch_trace_span",
    "best_effort_worker_thread_naming",
];

const ISOLATED_THREAD: &[&str] = &[
    "dedicated_thread",
    "parallel_regions",
    "os_thread_attributes",
    "non_reentrant_serialization",
    "cooperative_cancellation",
    "timeout_budget_observation",
    "worker_id_trace",
    "best_effort_worker_thread_naming",
];
const MANUAL_STEP: &[&str] = &[
    "host_driven_steps",
    "deterministic_region_order",
    "bounded_runner_stop_checks",
    "runtime_owned_publication_commit",
    "runtime_priority_ordering",
    "os_thread_attributes",
    "cooperative_cancellation",
    "timeout_budget_observation",
];

fn lane_json(lane: &Lane) -> Value {
    let implemented = match lane.kind {
        LaneKind::EventLoop => EVENT_LOOP,
        LaneKind::FixedRate => FIXED_RATE,
        LaneKind::ThreadPool => THREAD_POOL,
        LaneKind::IsolatedThread => ISOLATED_THREAD,
        LaneKind::ManualStep => MANUAL_STEP,
    };
    let mut json = json!({
        "id": lane.id,
        "type": lane.kind.name(),
        "implemented": implemented,
        "advisory_fields": lane.advisory_fields(),
        "future_extensions": [],
        "unsupported_claims": ["hard_real_time_guarantee", "hard_timeout_preemption"],
        "max_threads": lane.max_threads,
        "queue_capacity": lane.queue_capacity,
        "overflow": lane.overflow.name(),
    });
    if lane.kind == LaneKind::FixedRate {
        json["overrun_policy"] = json!(lane.overrun_policy.name());
    }
    json
}

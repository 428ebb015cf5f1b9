//! A plan as JSON, for tools: what `windlass graph plan` prints.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::Plan;
use crate::model::{
    BoundaryRole, Component, CompositeLoop, Convergence, CopyPolicy, Edge, EdgeKind, GraphKind,
    Lane, LaneKind, LaneOverflow, LoopKind, Mode, Overflow, OverrunPolicy, PartialSuccess, Readers,
    Scope,
};

/// The version of the scheduler's contract that a plan is made for.
const SCHEDULER_CONTRACT_VERSION: &str = "0.2";

impl Plan {
    /// Returns the plan as JSON with sorted keys. It depends on the graph alone, never on the
    /// machine.
    ///
    /// `role` gives the boundary role of a component type, for components that leave theirs out.
    pub fn to_json(&self, role: impl Fn(&str) -> Option<BoundaryRole>) -> Value {
        let graph = &self.graph;
        let component = |component| ComponentDocument::new(component, &role);
        let document = PlanDocument {
            graph: &graph.name,
            kind: graph.kind,
            schema_version: graph.schema_version,
            scheduler_contract_version: SCHEDULER_CONTRACT_VERSION,
            components: graph.components.iter().map(component).collect(),
            edges: graph.edges.iter().map(EdgeDocument::new).collect(),
            hierarchy: graph.hierarchy.iter().map(ScopeDocument::new).collect(),
            compiled_regions: self
                .order
                .iter()
                .map(|&place| RegionDocument::new(self, place))
                .collect(),
            region_order: self.region_order(),
            component_region: graph
                .components
                .iter()
                .zip(&self.region_of)
                .map(|(component, &region)| {
                    (component.id.as_str(), self.regions[region].id.as_str())
                })
                .collect(),
            lane_capabilities: graph.lanes.iter().map(LaneDocument::new).collect(),
        };
        // Every key is a text, so there is nothing that JSON cannot hold.
        serde_json::to_value(document).unwrap_or_default()
    }
}

/// The whole document.
#[derive(Serialize)]
struct PlanDocument<'a> {
    graph: &'a str,
    kind: GraphKind,
    schema_version: u64,
    scheduler_contract_version: &'static str,
    components: Vec<ComponentDocument<'a>>,
    edges: Vec<EdgeDocument<'a>>,
    hierarchy: Vec<ScopeDocument<'a>>,
    compiled_regions: Vec<RegionDocument<'a>>,
    region_order: Vec<&'a str>,
    component_region: BTreeMap<&'a str, &'a str>,
    lane_capabilities: Vec<LaneDocument<'a>>,
}

#[derive(Serialize)]
struct ComponentDocument<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    type_name: &'a str,
    lane: &'a str,
    boundary_role: BoundaryRole,
    boundary_descriptor: &'a str,
}

impl<'a> ComponentDocument<'a> {
    fn new(
        component: &'a Component,
        role: impl Fn(&str) -> Option<BoundaryRole>,
    ) -> ComponentDocument<'a> {
        let boundary = &component.boundary;
        let boundary_role = boundary.role.or_else(|| role(&component.type_name));
        ComponentDocument {
            id: &component.id,
            type_name: &component.type_name,
            lane: &component.execution.lane,
            boundary_role: boundary_role.unwrap_or_default(),
            boundary_descriptor: &boundary.descriptor,
        }
    }
}

#[derive(Serialize)]
struct EdgeDocument<'a> {
    id: &'a str,
    from: String,
    to: String,
    kind: EdgeKind,
    mode: Mode,
    capacity: usize,
    overflow: Overflow,
    max_inflight: usize,
    copy_policy: CopyPolicy,
    readers: Readers,
    slow_reader_drop_risk: bool,
}

impl<'a> EdgeDocument<'a> {
    fn new(edge: &'a Edge) -> EdgeDocument<'a> {
        let policy = &edge.policy;
        EdgeDocument {
            id: &edge.id,
            from: edge.from.to_string(),
            to: edge.to.to_string(),
            kind: edge.kind,
            mode: policy.mode,
            capacity: policy.capacity,
            overflow: policy.overflow,
            max_inflight: policy.max_inflight,
            copy_policy: policy.copy_policy,
            readers: policy.readers,
            slow_reader_drop_risk: policy.slow_reader_drop_risk(),
        }
    }
}

/// A part of the graph that was a subgraph in the file.
#[derive(Serialize)]
struct ScopeDocument<'a> {
    id: &'a str,
    components: &'a [String],
    edges: &'a [String],
    composite_loops: &'a [String],
    expansion: &'static str,
}

impl<'a> ScopeDocument<'a> {
    fn new(scope: &'a Scope) -> ScopeDocument<'a> {
        ScopeDocument {
            id: &scope.id,
            components: &scope.components,
            edges: &scope.edges,
            composite_loops: &scope.loops,
            expansion: "compile_time_namespace",
        }
    }
}

#[derive(Serialize)]
struct RegionDocument<'a> {
    id: &'a str,
    kind: &'static str,
    components: Vec<&'a str>,
    incoming_regions: Vec<&'a str>,
    outgoing_regions: Vec<&'a str>,
    loop_policy: Option<LoopDocument>,
}

impl<'a> RegionDocument<'a> {
    fn new(plan: &'a Plan, place: usize) -> RegionDocument<'a> {
        let region = &plan.regions[place];
        let ids = |places: &[usize]| -> Vec<&'a str> {
            let ids = places.iter().map(|&other| plan.regions[other].id.as_str());
            ids.collect()
        };
        let members = region.components.iter();
        let composite = region.composite_loop.map(|place| &plan.graph.loops[place]);
        RegionDocument {
            id: &region.id,
            kind: match composite {
                Some(_) => "composite_loop",
                None => "component",
            },
            components: members
                .map(|&member| plan.graph.components[member].id.as_str())
                .collect(),
            incoming_regions: ids(&region.incoming),
            outgoing_regions: ids(&region.outgoing),
            loop_policy: composite.map(LoopDocument::new),
        }
    }
}

#[derive(Serialize)]
struct LoopDocument {
    #[serde(rename = "type")]
    kind: LoopKind,
    budget_ms: f64,
    max_iterations: u64,
    convergence: &'static str,
    residual_threshold: Option<f64>,
    partial_success: Option<PartialSuccess>,
    max_inflight: usize,
    drop_policy: Option<Overflow>,
    min_interval_ms: f64,
}

impl LoopDocument {
    fn new(composite: &CompositeLoop) -> LoopDocument {
        let policy = &composite.policy;
        LoopDocument {
            kind: policy.kind,
            budget_ms: millis(policy.budget),
            max_iterations: policy.max_iterations.max(1),
            convergence: policy.convergence.map_or("", Convergence::name),
            residual_threshold: policy.residual_threshold,
            partial_success: policy.partial_success,
            max_inflight: policy.max_inflight,
            drop_policy: policy.drop_policy,
            min_interval_ms: millis(policy.min_interval),
        }
    }
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

/// What no lane of any kind has.
const UNSUPPORTED: &[&str] = &["hard_real_time_guarantee", "hard_timeout_preemption"];

#[derive(Serialize)]
struct LaneDocument<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: LaneKind,
    implemented: &'static [&'static str],
    advisory_fields: Vec<&'static str>,
    future_extensions: [&'static str; 0],
    unsupported_claims: &'static [&'static str],
    max_threads: usize,
    queue_capacity: usize,
    overflow: LaneOverflow,
    /// Only a lane with a rate has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    overrun_policy: Option<OverrunPolicy>,
}

impl<'a> LaneDocument<'a> {
    fn new(lane: &'a Lane) -> LaneDocument<'a> {
        LaneDocument {
            id: &lane.id,
            kind: lane.kind,
            implemented: match lane.kind {
                LaneKind::EventLoop => EVENT_LOOP,
                LaneKind::FixedRate => FIXED_RATE,
                LaneKind::ThreadPool => THREAD_POOL,
                LaneKind::IsolatedThread => ISOLATED_THREAD,
                LaneKind::ManualStep => MANUAL_STEP,
            },
            advisory_fields: lane.advisory_fields(),
            future_extensions: [],
            unsupported_claims: UNSUPPORTED,
            max_threads: lane.max_threads,
            queue_capacity: lane.queue_capacity,
            overflow: lane.overflow,
            overrun_policy: (lane.kind == LaneKind::FixedRate).then_some(lane.overrun_policy),
        }
    }
}

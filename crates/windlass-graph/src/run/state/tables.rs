//! Tables with one row per component and one per edge: what a run looks up at every invocation,
//! taken out of the plan once.

use std::sync::Arc;
use std::time::Duration;

use crate::component::refuses_early;
use crate::run::exec::overlap::Overlap;
use crate::run::exec::pool::pool_of;
use crate::run::state::triggers::policy::plain_edges;
use windlass_plan::compile::Plan;
use windlass_plan::model::{CopyPolicy, EdgeKind, LaneKind, Mode, OnError};

/// The tables of a run. Nothing in them changes while it runs.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) plan: Arc<Plan>,
    pub(crate) components: Vec<ComponentRow>,
    pub(crate) edges: Vec<EdgeRow>,
    /// The edges whose values become visible an epoch later by their mode.
    pub(crate) previous_tick: Vec<usize>,
    pub(crate) overlap: Overlap,
    /// By region: its only component, if that runs in the run's own task; or `NOT_HERE`.
    pub(crate) here: Vec<u32>,
}

/// A loop, or a component that runs on threads of its lane.
pub(crate) const NOT_HERE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct ComponentRow {
    pub(crate) lane: usize,
    /// 0 is the highest.
    pub(crate) priority: usize,
    pub(crate) budget: u64,
    /// When an invocation is asked to cancel: the lane's `max_callback_ms`, or the component's
    /// `timeout_ms` if it cannot be preempted.
    pub(crate) max_callback: u64,
    /// When an invocation is ended, if it can be preempted.
    pub(crate) timeout: u64,
    pub(crate) on_error: OnError,
    /// Never with `timeout_ms`: an interrupt would not know which invocation it is for.
    pub(crate) reentrant: bool,
    /// Where its messages come from, if each of them makes it run and nothing else does.
    pub(crate) plain: Option<Box<[u32]>>,
    /// The edges that may refuse a `publish`.
    pub(crate) limited: Vec<u32>,
    /// Whether it is a source that comes to an end and publishes again what was not accepted.
    pub(crate) is_finite_source: bool,
    /// Whether the outputs of a reentrant batch are committed in order.
    pub(crate) in_order: bool,
    /// Which of its lane's pools it runs on, if that has some.
    pub(crate) pool: Option<usize>,
    /// Whether its lane lets it run several times at once.
    pub(crate) overlaps_itself: bool,
}

#[derive(Debug)]
pub(crate) struct EdgeRow {
    pub(crate) kind: EdgeKind,
    /// The lane of the component at its end.
    pub(crate) reader_lane: usize,
    pub(crate) region_from: usize,
    pub(crate) region_to: usize,
    pub(crate) moves: bool,
    /// The key in the state store: the edge's target.
    pub(crate) key: Option<Arc<str>>,
    pub(crate) max_inflight: usize,
    /// Whether `publish` is refused when as many are on their way as may be.
    pub(crate) refuses_early: bool,
    /// Whether `publish` is refused while the channel is full.
    pub(crate) holds_off: bool,
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The earlier of two limits, of which 0 is none.
fn earlier(one: u64, other: u64) -> u64 {
    match (one, other) {
        (0, limit) | (limit, 0) => limit,
        (one, other) => one.min(other),
    }
}

impl Tables {
    /// `preemptible` says whether the invocations of a component can be ended from outside,
    /// `is_finite` whether it is a source that comes to an end.
    pub(crate) fn new(
        plan: &Arc<Plan>,
        overlap: Overlap,
        preemptible: impl Fn(usize) -> bool,
        is_finite: impl Fn(usize) -> bool,
    ) -> Tables {
        let graph = &plan.graph;
        let holds_off =
            |e: usize| graph.edges[e].policy.backpressure && is_finite(plan.edges[e].from);
        let component = |(c, component): (usize, &windlass_plan::model::Component)| {
            let out = || {
                let outputs = plan.nodes[c].outputs.iter();
                outputs.flat_map(|port| port.edges.iter().copied())
            };
            let asked = nanos(graph.lanes[plan.nodes[c].lane].max_callback);
            let limit = nanos(component.execution.timeout);
            let (max_callback, timeout) = match preemptible(c) {
                true => (asked, limit),
                false => (earlier(asked, limit), 0),
            };
            ComponentRow {
                lane: plan.nodes[c].lane,
                priority: component.execution.priority as usize,
                budget: nanos(component.execution.budget),
                max_callback,
                timeout,
                on_error: component.execution.on_error,
                reentrant: component.execution.reentrant && limit == 0,
                plain: plain_edges(plan, c),
                limited: out()
                    .filter(|&edge| refuses_early(&graph.edges[edge]) || holds_off(edge))
                    .map(|edge| edge as u32)
                    .collect(),
                is_finite_source: is_finite(c),
                in_order: out().all(|edge| graph.edges[edge].policy.preserve_order),
                pool: pool_of(plan, c),
                overlaps_itself: graph.lanes[plan.nodes[c].lane].kind == LaneKind::ThreadPool,
            }
        };
        let edge = |(e, edge): (usize, &windlass_plan::model::Edge)| EdgeRow {
            kind: edge.kind,
            reader_lane: plan.nodes[plan.edges[e].to].lane,
            region_from: plan.region_of[plan.edges[e].from],
            region_to: plan.region_of[plan.edges[e].to],
            moves: edge.policy.copy_policy == CopyPolicy::MoveOnly,
            key: (edge.kind == EdgeKind::State).then(|| edge.to.to_string().into()),
            max_inflight: edge.policy.max_inflight,
            refuses_early: refuses_early(edge),
            holds_off: holds_off(e),
        };
        let previous_tick = |(e, edge): (usize, &windlass_plan::model::Edge)| {
            (edge.policy.mode == Mode::PreviousTick).then_some(e)
        };
        let here = |region: &windlass_plan::compile::Region| match region.components.as_slice() {
            &[component] if region.composite_loop.is_none() => match pool_of(plan, component) {
                None => component as u32,
                Some(_) => NOT_HERE,
            },
            _ => NOT_HERE,
        };
        Tables {
            plan: plan.clone(),
            overlap,
            here: plan.regions.iter().map(here).collect(),
            components: graph.components.iter().enumerate().map(component).collect(),
            edges: graph.edges.iter().enumerate().map(edge).collect(),
            previous_tick: graph
                .edges
                .iter()
                .enumerate()
                .filter_map(previous_tick)
                .collect(),
        }
    }
}

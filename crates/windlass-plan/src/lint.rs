//! Advice about graphs that are valid: what will work, and perhaps not as meant.

use std::collections::HashMap;

use serde::Serialize;

use crate::catalog::{Catalog, Port};
use crate::check::is_large;
use crate::model::{
    Component, CopyPolicy, Edge, EdgeKind, Endpoint, Graph, Lane, LaneKind, LaneOverflow, Mode,
    Overflow, Owner,
};

/// A capacity beyond this is suspicious.
pub const SUSPICIOUS_CAPACITY: usize = 1024;

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that gave it.
    pub rule: Rule,
    /// What it is, as a sentence without a full stop.
    pub message: String,
    /// Where in the graph, as in a diagnostic.
    pub graph_path: String,
    /// The component that it is about, if any.
    pub component: Option<String>,
    /// The edge that it is about, if any.
    pub edge: Option<String>,
}

crate::model::named! {
    /// A rule of the lint.
    pub enum Rule {
        /// A channel holds more than [`SUSPICIOUS_CAPACITY`].
        SuspiciousCapacity = "suspicious_capacity",
        /// `overflow: block` where one thread runs producer and consumer.
        BlockingOverflowEventLoop = "blocking_overflow_event_loop",
        /// An async edge has no `max_inflight`, or lets more be on their way than its channel
        /// holds.
        AsyncCapacity = "async_capacity",
        /// A value arrives an epoch later.
        DelayEpochBoundary = "delay_epoch_boundary",
        /// A slow reader misses values.
        SlowReaderDropRisk = "slow_reader_drop_risk",
        /// A policy replaces or drops what a file has, instead of letting the file wait.
        BackpressureGivenUp = "backpressure_given_up",
        /// Payloads are lent, and their producer does not own them.
        LoanedViewWithoutPoolOwner = "loaned_view_without_pool_owner",
        /// Payloads that are likely to be large are copied.
        LargePayloadCopy = "large_payload_copy",
        /// Several edges write the same state.
        StateMultipleWriters = "state_multiple_writers",
        /// An invocation may take longer than its lane's period.
        BudgetExceedsLanePeriod = "budget_exceeds_lane_period",
    }
}

/// Looks for things that are valid and perhaps not meant.
pub fn lint(graph: &Graph, catalog: &dyn Catalog) -> Vec<Finding> {
    let lint = Lint::new(graph, catalog);
    let mut found = Vec::new();
    for lane in &graph.lanes {
        found.extend(blocking_lane(lane));
    }
    for (nth, component) in graph.components.iter().enumerate() {
        found.extend(lint.budget(nth, component));
    }
    let mut writers = HashMap::new();
    for (nth, edge) in graph.edges.iter().enumerate() {
        lint.edge(nth, edge, &mut found);
        if edge.kind == EdgeKind::State {
            match writers.get(&edge.to) {
                None => {
                    writers.insert(&edge.to, &edge.id);
                }
                Some(other) => {
                    let message = format!("`{other}` writes the state of `{}` as well", edge.to);
                    found.push(of_edge(
                        Rule::StateMultipleWriters,
                        nth,
                        "to",
                        edge,
                        message,
                    ));
                }
            }
        }
    }
    found
}

fn of_edge(rule: Rule, nth: usize, field: &str, edge: &Edge, message: String) -> Finding {
    Finding {
        rule,
        message,
        graph_path: format!("edges[{nth}].{field}"),
        component: None,
        edge: Some(edge.id.clone()),
    }
}

fn blocking_lane(lane: &Lane) -> Option<Finding> {
    let blocks = lane.kind == LaneKind::EventLoop && lane.overflow == LaneOverflow::Block;
    blocks.then(|| Finding {
        rule: Rule::BlockingOverflowEventLoop,
        message: format!(
            "the event loop `{}` cannot block: what is too much is refused",
            lane.id
        ),
        graph_path: format!("lanes.{}.overflow", lane.id),
        component: None,
        edge: None,
    })
}

/// A graph with what the rules look up.
struct Lint<'a> {
    catalog: &'a dyn Catalog,
    components: HashMap<&'a str, &'a Component>,
    lanes: HashMap<&'a str, &'a Lane>,
}

impl<'a> Lint<'a> {
    fn new(graph: &'a Graph, catalog: &'a dyn Catalog) -> Lint<'a> {
        Lint {
            catalog,
            components: graph
                .components
                .iter()
                .map(|c| (c.id.as_str(), c))
                .collect(),
            lanes: graph
                .lanes
                .iter()
                .map(|lane| (lane.id.as_str(), lane))
                .collect(),
        }
    }

    fn lane_of(&self, component: &str) -> Option<&'a Lane> {
        let component = self.components.get(component)?;
        self.lanes.get(component.execution.lane.as_str()).copied()
    }

    fn budget(&self, nth: usize, component: &Component) -> Option<Finding> {
        let lane = self.lane_of(&component.id)?;
        let (budget, period) = (component.execution.budget, lane.cadence());
        (!period.is_zero() && budget > period).then(|| Finding {
            rule: Rule::BudgetExceedsLanePeriod,
            message: format!(
                "`{}` may take {budget:?}, and its lane `{}` ticks every {period:?}",
                component.id, lane.id
            ),
            graph_path: format!("components[{nth}].execution.budget_ms"),
            component: Some(component.id.clone()),
            edge: None,
        })
    }

    fn edge(&self, nth: usize, edge: &Edge, found: &mut Vec<Finding>) {
        let policy = &edge.policy;
        let mut push =
            |rule, field: &str, message| found.push(of_edge(rule, nth, field, edge, message));
        if policy.capacity > SUSPICIOUS_CAPACITY {
            let message = format!(
                "a capacity of {} is more than {SUSPICIOUS_CAPACITY}",
                policy.capacity
            );
            push(Rule::SuspiciousCapacity, "policy.capacity", message);
        }
        let on_event_loop = |end: &Endpoint| {
            self.lane_of(&end.component)
                .is_some_and(|lane| lane.kind == LaneKind::EventLoop)
        };
        if policy.overflow == Overflow::Block && on_event_loop(&edge.from) {
            let message = format!(
                "`{}` is on an event loop, which cannot block",
                edge.from.component
            );
            push(Rule::BlockingOverflowEventLoop, "policy.overflow", message);
        }
        if edge.kind == EdgeKind::Async {
            if policy.max_inflight == 0 {
                let message = "nothing bounds how many are on their way".to_owned();
                push(Rule::AsyncCapacity, "policy.max_inflight", message);
            } else if policy.max_inflight > policy.capacity {
                let message = format!(
                    "{} may be on their way to a channel that holds {}",
                    policy.max_inflight, policy.capacity
                );
                push(Rule::AsyncCapacity, "policy.max_inflight", message);
            }
        }
        if edge.kind == EdgeKind::Delay {
            let epochs = match policy.mode {
                Mode::PreviousTick => "two epochs",
                _ => "an epoch",
            };
            let message = format!("what `{}` publishes arrives {epochs} later", edge.from);
            push(Rule::DelayEpochBoundary, "kind", message);
        }
        if policy.slow_reader_drop_risk() {
            let message = format!("a slow reader misses what {} evicts", policy.overflow);
            push(Rule::SlowReaderDropRisk, "policy.readers", message);
        }
        let from = self.components.get(edge.from.component.as_str());
        let source = from.and_then(|from| self.catalog.descriptor(&from.type_name));
        if source.is_some_and(|source| source.finite_source) && !policy.backpressure {
            let (field, what) = match policy.overflow {
                Overflow::FailFast => (
                    "overflow",
                    "ends the run at the first record that does not fit",
                ),
                Overflow::DropNewest => ("overflow", "drops the records that do not fit"),
                _ if policy.mode.is_latest_style() => ("mode", "keeps the newest record only"),
                _ => ("overflow", "replaces records before they are read"),
            };
            let message = format!(
                "`{}` could wait for its reader, and the {field} of this edge {what}: leave the \
                 {field} out, or use `mode: queue` with `overflow: reject`",
                edge.from.component
            );
            push(
                Rule::BackpressureGivenUp,
                &format!("policy.{field}"),
                message,
            );
        }
        if policy.copy_policy == CopyPolicy::LoanedView && policy.owner != Owner::Producer {
            let message = format!("payloads are lent, and their owner is the {}", policy.owner);
            push(Rule::LoanedViewWithoutPoolOwner, "policy.owner", message);
        }
        let is_large =
            is_large(self.port(&edge.from, true)) || is_large(self.port(&edge.to, false));
        if policy.copy_policy == CopyPolicy::Copy && is_large {
            let message = "payloads that are likely to be large are copied".to_owned();
            push(Rule::LargePayloadCopy, "policy.copy_policy", message);
        }
    }

    fn port(&self, end: &Endpoint, is_output: bool) -> Option<&'a Port> {
        let component = self.components.get(end.component.as_str())?;
        let descriptor = self.catalog.descriptor(&component.type_name)?;
        let ports = match is_output {
            true => &descriptor.outputs,
            false => &descriptor.inputs,
        };
        ports.iter().find(|port| port.name == end.port)
    }
}

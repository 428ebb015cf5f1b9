//! What two plans have in common.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::compile::Plan;

/// How two plans differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanDiff {
    /// Whether the regions run in the same order.
    pub same_region_order: bool,
    /// Whether the components are in the same regions.
    pub same_component_regions: bool,
    /// Components of the second plan only.
    pub added_components: Vec<String>,
    /// Components of the first plan only.
    pub removed_components: Vec<String>,
    /// Edges of the second plan only.
    pub added_edges: Vec<String>,
    /// Edges of the first plan only.
    pub removed_edges: Vec<String>,
    /// Components and edges of both that are not the same; lanes, loops and configuration that are
    /// not in both.
    pub changed: Vec<String>,
    /// The order of the first plan.
    pub region_order_a: Vec<String>,
    /// The order of the second plan.
    pub region_order_b: Vec<String>,
}

impl PlanDiff {
    /// Compares two plans.
    pub fn new(one: &Plan, two: &Plan) -> PlanDiff {
        let [region_order_a, region_order_b] = [one, two].map(|plan| {
            let order = plan.region_order().into_iter();
            order.map(str::to_owned).collect::<Vec<String>>()
        });
        let component_ids = [one, two].map(|plan| {
            let ids = plan.graph.components.iter().map(|c| c.id.as_str());
            ids.collect::<BTreeSet<&str>>()
        });
        let edge_ids = [one, two].map(|plan| {
            let ids = plan.graph.edges.iter().map(|e| e.id.as_str());
            ids.collect::<BTreeSet<&str>>()
        });
        let mut changed = Vec::new();
        for component in &one.graph.components {
            let other = two.graph.component(&component.id);
            if other.is_some_and(|(_, other)| other != component) {
                changed.push(format!("component {}", component.id));
            }
        }
        for edge in &one.graph.edges {
            let other = two.graph.edges.iter().find(|other| other.id == edge.id);
            if other.is_some_and(|other| other != edge) {
                changed.push(format!("edge {}", edge.id));
            }
        }
        for lane in &one.graph.lanes {
            let other = two.graph.lane(&lane.id);
            if other.is_none_or(|(_, other)| other != lane) {
                changed.push(format!("lane {}", lane.id));
            }
        }
        for lane in &two.graph.lanes {
            if one.graph.lane(&lane.id).is_none() {
                changed.push(format!("lane {}", lane.id));
            }
        }
        for composite in &one.graph.loops {
            let other = two
                .graph
                .loops
                .iter()
                .find(|other| other.id == composite.id);
            if other.is_none_or(|other| other != composite) {
                changed.push(format!("loop {}", composite.id));
            }
        }
        for composite in &two.graph.loops {
            if !one.graph.loops.iter().any(|other| other.id == composite.id) {
                changed.push(format!("loop {}", composite.id));
            }
        }
        if one.graph.config != two.graph.config {
            changed.push("graph.config".to_owned());
        }
        PlanDiff {
            same_region_order: region_order_a == region_order_b,
            same_component_regions: regions_of(one) == regions_of(two),
            added_components: minus(&component_ids[1], &component_ids[0]),
            removed_components: minus(&component_ids[0], &component_ids[1]),
            added_edges: minus(&edge_ids[1], &edge_ids[0]),
            removed_edges: minus(&edge_ids[0], &edge_ids[1]),
            changed,
            region_order_a,
            region_order_b,
        }
    }

    /// Whether there is no difference at all.
    pub fn is_same(&self) -> bool {
        self.same_region_order
            && self.same_component_regions
            && self.added_edges.is_empty()
            && self.removed_edges.is_empty()
            && self.changed.is_empty()
    }
}

fn regions_of(plan: &Plan) -> BTreeSet<(&str, &str)> {
    let components = plan.graph.components.iter().zip(&plan.region_of);
    components
        .map(|(c, &region)| (c.id.as_str(), plan.regions[region].id.as_str()))
        .collect()
}

fn minus(these: &BTreeSet<&str>, those: &BTreeSet<&str>) -> Vec<String> {
    these.difference(those).map(|id| (*id).to_owned()).collect()
}

//! Cycles and composite loops: each cycle of immediate edges is exactly one loop.

use std::collections::{HashMap, HashSet};

use super::context::Context;
use crate::compile::{is_cyclic, strongly_connected};
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{CompositeLoop, EdgeKind, Graph};

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let graph = context.graph;
    let cycles = Cycles::new(context);
    let mut owner: HashMap<usize, usize> = HashMap::new();
    for (nth, composite) in graph.loops.iter().enumerate() {
        let members = members(context, nth, composite, found);
        let touched: HashSet<usize> = members
            .iter()
            .filter_map(|member| cycles.of.get(member).copied())
            .collect();
        let cycle = match touched.iter().next() {
            None => {
                found.push(decorative(nth, composite));
                continue;
            }
            Some(&cycle) if touched.len() == 1 => cycle,
            Some(_) => {
                found.push(partial(nth, composite, "more than one cycle"));
                continue;
            }
        };
        let whole = &cycles.groups[cycle];
        let covers = whole
            .iter()
            .filter(|member| members.contains(member))
            .count();
        if covers < whole.len() {
            found.push(partial(nth, composite, "only a part of a cycle"));
        } else if members.len() > whole.len() {
            found.push(partial(nth, composite, "more than a cycle"));
        } else if let Some(other) = owner.get(&cycle) {
            let message = format!("the loop `{}` has the same members", graph.loops[*other].id);
            let path = format!("composite_loops[{nth}].components");
            let finding = Diagnostic::new(Code::GraphValidationError, path, message);
            found.push(finding.fix("remove one of the two"));
        } else {
            owner.insert(cycle, nth);
        }
    }
    let inner = inner_edges(context, &cycles);
    let scopes = scopes(graph);
    for (cycle, group) in cycles.groups.iter().enumerate() {
        match owner.get(&cycle) {
            None => found.push(uncovered(graph, group, &inner[cycle])),
            Some(&nth) => found.extend(hidden(graph, &scopes, nth, group)),
        }
    }
}

/// The groups of components that are cycles.
struct Cycles {
    groups: Vec<Vec<usize>>,
    /// The group of each component that is in one.
    of: HashMap<usize, usize>,
}

impl Cycles {
    fn new(context: &Context<'_>) -> Cycles {
        let graph = context.graph;
        // Whether one component is a cycle takes a look at all edges, so it is asked of few.
        let own_edge: HashSet<&str> = graph
            .edges
            .iter()
            .filter(|edge| edge.from.component == edge.to.component)
            .map(|edge| edge.from.component.as_str())
            .collect();
        let may_be_one = |group: &Vec<usize>| {
            group.len() > 1
                || group
                    .iter()
                    .any(|&place| own_edge.contains(graph.components[place].id.as_str()))
        };
        let groups: Vec<Vec<usize>> = strongly_connected(graph)
            .into_iter()
            .filter(|group| may_be_one(group) && is_cyclic(graph, group))
            .collect();
        let of = groups
            .iter()
            .enumerate()
            .flat_map(|(nth, group)| group.iter().map(move |&member| (member, nth)))
            .collect();
        Cycles { groups, of }
    }
}

/// The places of a loop's members; reports those that do not exist or are there twice.
fn members(
    context: &Context<'_>,
    nth: usize,
    composite: &CompositeLoop,
    found: &mut Vec<Diagnostic>,
) -> HashSet<usize> {
    let mut members = HashSet::new();
    for (place, id) in composite.components.iter().enumerate() {
        let path = format!("composite_loops[{nth}].components[{place}]");
        match context.component(id) {
            None => {
                let message = format!("component {id:?} does not exist");
                let finding = Diagnostic::new(Code::UnknownComponent, path, message);
                found.push(finding.component(id).fix(context.similar_component(id)));
            }
            Some(member) => {
                if !members.insert(member) {
                    let message = format!("`{id}` is a member already");
                    let finding = Diagnostic::new(Code::DuplicateId, path, message);
                    found.push(finding.component(id).fix("name it once"));
                }
            }
        }
    }
    members
}

fn about(code: Code, nth: usize, composite: &CompositeLoop, message: String) -> Diagnostic {
    let path = format!("composite_loops[{nth}].components");
    let finding = Diagnostic::new(code, path, message);
    composite
        .components
        .iter()
        .fold(finding, |finding, id| finding.component(id))
}

fn decorative(nth: usize, composite: &CompositeLoop) -> Diagnostic {
    let message = format!(
        "the members of the loop `{}` form no cycle of immediate edges",
        composite.id
    );
    about(Code::DecorativeCompositeLoop, nth, composite, message).fix("remove the loop")
}

fn partial(nth: usize, composite: &CompositeLoop, what: &str) -> Diagnostic {
    let message = format!("the loop `{}` is {what}", composite.id);
    about(Code::PartialCompositeLoop, nth, composite, message)
        .fix("name exactly the components of one cycle")
}

/// The immediate edges within each cycle.
fn inner_edges(context: &Context<'_>, cycles: &Cycles) -> Vec<Vec<usize>> {
    let mut inner = vec![Vec::new(); cycles.groups.len()];
    let edges = context.graph.edges.iter().enumerate();
    for (nth, edge) in edges.filter(|(_, edge)| edge.kind == EdgeKind::Immediate) {
        let cycle_of = |id: &str| {
            context
                .component(id)
                .and_then(|place| cycles.of.get(&place))
        };
        if let Some(&cycle) = cycle_of(&edge.from.component)
            && cycle_of(&edge.to.component) == Some(&cycle)
        {
            inner[cycle].push(nth);
        }
    }
    inner
}

fn uncovered(graph: &Graph, group: &[usize], edges: &[usize]) -> Diagnostic {
    let ids: Vec<&str> = group
        .iter()
        .map(|&place| graph.components[place].id.as_str())
        .collect();
    let message = match ids[..] {
        [alone] => format!("`{alone}` feeds itself immediately, and no composite loop owns it"),
        _ => format!(
            "{} components feed each other immediately, and no composite loop owns them",
            ids.len()
        ),
    };
    let path = edges
        .first()
        .map_or_else(String::new, |nth| format!("edges[{nth}]"));
    let mut finding = Diagnostic::new(Code::ImmediateCycleWithoutLoop, path, message);
    finding.involved_components = ids.into_iter().map(str::to_owned).collect();
    finding.involved_edges = edges
        .iter()
        .map(|&nth| graph.edges[nth].id.clone())
        .collect();
    finding.fix("add a composite loop of exactly these components, or make an edge `kind: delay`")
}

/// The scope of each component that is in one.
fn scopes(graph: &Graph) -> HashMap<&str, usize> {
    let scopes = graph.hierarchy.iter().enumerate();
    scopes
        .flat_map(|(place, scope)| scope.components.iter().map(move |id| (id.as_str(), place)))
        .collect()
}

/// A cycle that leaves a subgraph cannot be seen there.
fn hidden(
    graph: &Graph,
    scopes: &HashMap<&str, usize>,
    nth: usize,
    group: &[usize],
) -> Option<Diagnostic> {
    let ids = || {
        group
            .iter()
            .map(|&place| graph.components[place].id.as_str())
    };
    let touched: HashSet<Option<usize>> = ids().map(|id| scopes.get(id).copied()).collect();
    if touched.len() < 2 {
        return None;
    }
    let names: Vec<&str> = graph
        .hierarchy
        .iter()
        .enumerate()
        .filter(|(place, _)| touched.contains(&Some(*place)))
        .map(|(_, scope)| scope.id.as_str())
        .collect();
    let message = format!(
        "the cycle of the loop `{}` runs through the boundary of {}",
        graph.loops[nth].id,
        names.join(", ")
    );
    let path = format!("composite_loops[{nth}]");
    let finding = Diagnostic::new(Code::SubgraphHiddenCycle, path, message);
    let finding = ids().fold(finding, |finding, id| finding.component(id));
    Some(finding.fix("keep the whole cycle in one subgraph, or use a delay edge at its boundary"))
}

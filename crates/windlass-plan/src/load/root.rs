//! The root of a file, and its `graph`.

use std::rc::Rc;

use super::expand::{Body, Expanded, expand};
use super::walk::{At, Walk};
use super::{component, edge, lane, loops};
use crate::model::{ClockDomain, Graph, GraphKind, Lane};
use crate::source::Node;

/// The schema versions that this loader reads.
const SCHEMA_VERSIONS: std::ops::RangeInclusive<u64> = 1..=2;

/// The graph of a whole file, as far as it can be read; none if it is no map.
pub(super) fn graph(walk: &mut Walk<'_>, root: &Rc<Node>) -> Option<Graph> {
    let at = walk.at(String::new(), root);
    let mut fields = walk.fields(at)?;
    if let Some(at) = fields.need(walk, "schema_version") {
        version(walk, &at);
    }
    let mut graph = fields
        .need(walk, "graph")
        .and_then(|at| head(walk, at))
        .unwrap_or_else(|| Graph::new(""));
    graph.schema_version = walk.version;
    if let Some(at) = fields.need(walk, "lanes") {
        graph.lanes = lanes(walk, &at);
    }
    let components = fields.need(walk, "components");
    let edges = fields.need(walk, "edges");
    let composite_loops = fields.get(walk, "composite_loops");
    let mut list = |at: Option<At<'_>>| at.map_or_else(Vec::new, |at| walk.items(&at).to_vec());
    let own = Body {
        components: list(components),
        edges: list(edges),
        loops: list(composite_loops),
    };
    let expanded = expand(walk, &mut fields, own);
    fields.finish(walk);
    parts(walk, &mut graph, expanded);
    Some(graph)
}

fn version(walk: &mut Walk<'_>, at: &At<'_>) {
    let Some(version) = walk.whole(at) else {
        return;
    };
    if SCHEMA_VERSIONS.contains(&version) {
        walk.version = version;
        return;
    }
    let (first, last) = (SCHEMA_VERSIONS.start(), SCHEMA_VERSIONS.end());
    let message = format!("schema_version {version} is not known; expected {first} to {last}");
    walk.error(at, message, "write `schema_version: 2`");
    // Nothing more is said about what a version has.
    walk.version = *last;
}

/// Reads the section `graph`.
fn head(walk: &mut Walk<'_>, at: At<'_>) -> Option<Graph> {
    let mut fields = walk.fields(at)?;
    let name = fields.need(walk, "name").and_then(|at| walk.text(&at));
    let mut graph = Graph::new(name.unwrap_or_default());
    if let Some(at) = fields.get(walk, "kind") {
        graph.kind = walk
            .one_of(&at, GraphKind::NAMES, GraphKind::named)
            .unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "config") {
        graph.config = walk.config(&at);
    }
    if let Some(at) = fields.get(walk, "clock")
        && let Some(mut clock) = walk.fields(at)
    {
        if let Some(at) = clock.get(walk, "runtime_domain") {
            let steady = ClockDomain::Steady.name();
            walk.one_of(&at, &[steady], |name| (name == "steady").then_some(()));
        }
        if let Some(at) = clock.get(walk, "event_domain") {
            graph.event_domain = walk
                .one_of(&at, ClockDomain::NAMES, ClockDomain::named)
                .unwrap_or_default();
        }
        clock.finish(walk);
    }
    fields.finish(walk);
    Some(graph)
}

fn lanes(walk: &mut Walk<'_>, at: &At<'_>) -> Vec<Lane> {
    let entries = walk.entries(at);
    if entries.len() > walk.limits.lanes {
        walk.over_limit(at, "lane count", walk.limits.lanes);
        walk.give_up_meaning();
        return Vec::new();
    }
    entries
        .into_iter()
        .filter_map(|(entry, at)| lane::lane(walk, &entry.key, at))
        .collect()
}

/// Reads the expanded lists, and notes what came from which scope.
fn parts(walk: &mut Walk<'_>, graph: &mut Graph, expanded: Expanded) {
    let mut scopes = expanded.scopes;
    for (nth, part) in expanded.components.iter().enumerate() {
        let at = walk.at(format!("components[{nth}]"), &part.node);
        let names = part.scope.map(|place| &scopes[place]);
        let component = component::component(walk, at, names);
        if let Some(place) = part.scope {
            scopes[place].scope.components.push(component.id.clone());
        }
        graph.components.push(component);
    }
    for (nth, part) in expanded.edges.iter().enumerate() {
        let at = walk.at(format!("edges[{nth}]"), &part.node);
        let names = part.scope.map(|place| &scopes[place]);
        let edge = edge::edge(walk, at, names);
        if let Some(place) = part.scope {
            scopes[place].scope.edges.push(edge.id.clone());
        }
        graph.edges.push(edge);
    }
    for (nth, part) in expanded.loops.iter().enumerate() {
        let at = walk.at(format!("composite_loops[{nth}]"), &part.node);
        let names = part.scope.map(|place| &scopes[place]);
        let composite = loops::composite_loop(walk, at, names);
        if let Some(place) = part.scope {
            scopes[place].scope.loops.push(composite.id.clone());
        }
        graph.loops.push(composite);
    }
    graph.hierarchy = scopes.into_iter().map(|names| names.scope).collect();
}

//! Ids are there, and there once.

use std::collections::{HashMap, HashSet};

use super::context::Context;
use crate::diagnostic::{Code, Diagnostic};

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let graph = context.graph;
    let lanes = graph.lanes.iter().map(|lane| lane.id.as_str());
    unique(
        "lane",
        lanes,
        |nth| format!("lanes.{}", graph.lanes[nth].id),
        found,
    );
    let components = graph.components.iter().map(|c| c.id.as_str());
    unique(
        "component",
        components,
        |nth| format!("components[{nth}].id"),
        found,
    );
    let edges = graph.edges.iter().map(|edge| edge.id.as_str());
    unique("edge", edges, |nth| format!("edges[{nth}].id"), found);
    let loops = graph.loops.iter().map(|l| l.id.as_str());
    unique(
        "composite loop",
        loops,
        |nth| format!("composite_loops[{nth}].id"),
        found,
    );
    scopes(context, found);
    regions(context, found);
    for (place, component) in graph.components.iter().enumerate() {
        let sources = component.event_sources.iter();
        let mut seen = HashSet::new();
        for (nth, source) in sources.enumerate() {
            if !source.id.is_empty() && !seen.insert(&source.id) {
                let path = format!("components[{place}].event_sources[{nth}].id");
                found.push(duplicate("event source", &source.id, path).component(&component.id));
            }
        }
    }
}

fn unique<'a>(
    what: &str,
    ids: impl Iterator<Item = &'a str>,
    path: impl Fn(usize) -> String,
    found: &mut Vec<Diagnostic>,
) {
    let mut seen = HashSet::new();
    for (nth, id) in ids.enumerate() {
        if id.is_empty() {
            let message = format!("this {what} has no id");
            let finding = Diagnostic::new(Code::GraphValidationError, path(nth), message);
            found.push(finding.fix("give it one"));
        } else if !seen.insert(id) {
            let finding = duplicate(what, id, path(nth));
            found.push(match what {
                "component" => finding.component(id),
                "edge" => finding.edge(id),
                _ => finding,
            });
        }
    }
}

/// Subgraphs and template instances share their names: both are prefixes.
fn scopes(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let scopes = &context.graph.hierarchy;
    let mut seen = HashSet::new();
    for scope in scopes {
        if !seen.insert(&scope.id) {
            let first = scope.components.iter().find_map(|id| context.component(id));
            let path = first.map_or_else(String::new, |place| format!("components[{place}]"));
            found.push(duplicate("subgraph or template instance", &scope.id, path));
        }
    }
}

/// A loop's id is that of its region, and so may not be that of a component outside.
fn regions(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut loops = HashMap::new();
    for (nth, composite) in context.graph.loops.iter().enumerate() {
        loops
            .entry(composite.id.as_str())
            .or_insert((nth, composite));
    }
    for component in &context.graph.components {
        if let Some((nth, composite)) = loops.get(component.id.as_str())
            && !composite.components.contains(&component.id)
        {
            let message = format!(
                "`{}` is the id of this loop and of a component outside, and both name a region",
                component.id
            );
            let path = format!("composite_loops[{nth}].id");
            let finding = Diagnostic::new(Code::DuplicateId, path, message);
            found.push(
                finding
                    .component(&component.id)
                    .fix("give the loop another id"),
            );
        }
    }
}

fn duplicate(what: &str, id: &str, path: String) -> Diagnostic {
    Diagnostic::new(
        Code::DuplicateId,
        path,
        format!("there is another {what} `{id}`"),
    )
    .fix("give one of the two another id")
}

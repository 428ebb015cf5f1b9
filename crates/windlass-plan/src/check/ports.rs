//! Ports: both ends of each edge are there, and inputs have the edges that they need.

use std::collections::{HashMap, HashSet};

use super::context::Context;
use crate::catalog::Port;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{EdgeKind, Endpoint};

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (nth, edge) in context.graph.edges.iter().enumerate() {
        for (field, end) in [("from", &edge.from), ("to", &edge.to)] {
            if let Some(finding) = missing_end(context, end, field) {
                let finding = Diagnostic {
                    graph_path: format!("edges[{nth}].{field}"),
                    ..finding
                };
                found.push(finding.edge(&edge.id));
            }
        }
    }
    inputs(context, found);
    multiplicity(context, found);
}

fn missing_end(context: &Context<'_>, end: &Endpoint, field: &str) -> Option<Diagnostic> {
    let Some(place) = context.component(&end.component) else {
        let message = format!("component {:?} does not exist", end.component);
        let finding = Diagnostic::new(Code::UnknownComponent, "", message);
        return Some(
            finding
                .component(&end.component)
                .fix(context.similar_component(&end.component)),
        );
    };
    let descriptor = context.descriptor(place)?;
    let (ports, side) = match field {
        "from" => (&descriptor.outputs, "output"),
        _ => (&descriptor.inputs, "input"),
    };
    if descriptor.open_ports || ports.iter().any(|port| port.name == end.port) {
        return None;
    }
    let message = format!("`{}` has no {side} `{}`", end.component, end.port);
    let finding = Diagnostic::new(Code::UnknownPort, "", message);
    Some(finding.component(&end.component).fix(known(ports, side)))
}

/// A fix that lists what there is.
pub(super) fn known(ports: &[Port], side: &str) -> String {
    match ports {
        [] => format!("its type has no {side}s"),
        ports => {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            format!("its {side}s are: {}", names.join(", "))
        }
    }
}

fn inputs(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (place, component) in context.graph.components.iter().enumerate() {
        let Some(descriptor) = context.descriptor(place) else {
            continue;
        };
        if context.is_duplicate(place) {
            continue;
        }
        let connected: HashSet<&str> = context
            .incoming(place)
            .map(|(_, edge)| edge.to.port.as_str())
            .collect();
        for port in &descriptor.inputs {
            if connected.contains(port.name.as_str()) || context.may_be_meant(place, &port.name) {
                continue;
            }
            let (code, message) = match port.required {
                true => (
                    Code::MissingRequiredInput,
                    format!(
                        "no edge ends at `{}.{}`, which is required",
                        component.id, port.name
                    ),
                ),
                false => (
                    Code::OptionalInputUnconnected,
                    format!("no edge ends at `{}.{}`", component.id, port.name),
                ),
            };
            let fix = format!("add an edge `to: {}.{}`", component.id, port.name);
            let finding = Diagnostic::new(code, format!("components[{place}]"), message);
            found.push(finding.component(&component.id).fix(fix));
        }
    }
}

/// An input for one edge has one. State edges are counted as writers instead.
fn multiplicity(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut first: HashMap<&Endpoint, &str> = HashMap::new();
    for (nth, edge) in context.graph.edges.iter().enumerate() {
        let port = context
            .component(&edge.to.component)
            .and_then(|place| context.descriptor(place))
            .and_then(|d| d.inputs.iter().find(|port| port.name == edge.to.port));
        let Some(port) = port else {
            continue;
        };
        if port.multiple || edge.kind == EdgeKind::State {
            continue;
        }
        match first.get(&edge.to) {
            None => {
                first.insert(&edge.to, &edge.id);
            }
            Some(other) => {
                let message = format!(
                    "`{}` takes one edge, and `{other}` ends there already",
                    edge.to
                );
                let finding = Diagnostic::new(
                    Code::PortMultiplicityMismatch,
                    format!("edges[{nth}].to"),
                    message,
                );
                found.push(
                    finding
                        .component(&edge.to.component)
                        .edge(*other)
                        .edge(&edge.id)
                        .fix("remove one of the edges, or join them in a component before"),
                );
            }
        }
    }
}

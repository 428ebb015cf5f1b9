//! Payloads: what edges carry fits both ends, and is not copied needlessly.

use std::collections::HashMap;

use super::context::Context;
use crate::catalog::Port;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{CopyPolicy, Endpoint, Readers};

/// Words in the type or schema of a payload that is likely to be large.
const LARGE: [&str; 9] = [
    "frame",
    "image",
    "video",
    "binary",
    "blob",
    "bytes",
    "tensor",
    "pointcloud",
    "point_cloud",
];

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (nth, edge) in context.graph.edges.iter().enumerate() {
        let from = port(context, &edge.from, true);
        let to = port(context, &edge.to, false);
        if let (Some(from), Some(to)) = (from, to)
            && let Some((what, a, b)) = mismatch(from, to)
        {
            let message = format!(
                "`{}` has the {what} {a}, and `{}` expects {b}",
                edge.from, edge.to
            );
            let finding = Diagnostic::new(
                Code::PayloadTypeMismatch,
                format!("edges[{nth}].to"),
                message,
            );
            found.push(
                finding
                    .component(&edge.from.component)
                    .component(&edge.to.component)
                    .edge(&edge.id)
                    .fix("put a component that converts between them"),
            );
        }
        if edge.policy.copy_policy == CopyPolicy::Copy && (is_large(from) || is_large(to)) {
            let message = format!("`{}` copies payloads that are likely to be large", edge.id);
            // Left out, the policy is still a copy: then this leads to the edge.
            let path = format!("edges[{nth}].policy.copy_policy");
            let finding = Diagnostic::new(Code::LargePayloadCopy, path, message);
            found.push(finding.edge(&edge.id).fix("use `copy_policy: shared_view`"));
        }
    }
    moves(context, found);
}

/// The port at an end, if its type is known.
fn port<'a>(context: &'a Context<'_>, end: &Endpoint, is_output: bool) -> Option<&'a Port> {
    let descriptor = context.descriptor(context.component(&end.component)?)?;
    let ports = match is_output {
        true => &descriptor.outputs,
        false => &descriptor.inputs,
    };
    ports.iter().find(|port| port.name == end.port)
}

/// What differs; an empty name stands for anything.
fn mismatch<'a>(from: &'a Port, to: &'a Port) -> Option<(&'static str, &'a str, &'a str)> {
    let differ = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && a != b;
    if differ(&from.payload_type, &to.payload_type) {
        Some(("payload type", &from.payload_type, &to.payload_type))
    } else if differ(&from.schema, &to.schema) {
        Some(("schema", &from.schema, &to.schema))
    } else {
        None
    }
}

/// Whether what passes a port is likely to be large, by the name of its type or schema.
pub(crate) fn is_large(port: Option<&Port>) -> bool {
    port.is_some_and(|port| {
        [&port.payload_type, &port.schema].into_iter().any(|name| {
            let name = name.to_ascii_lowercase();
            LARGE.iter().any(|word| name.contains(word))
        })
    })
}

/// What is moved goes to one reader.
fn moves(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut edges_from: HashMap<&Endpoint, usize> = HashMap::new();
    for edge in &context.graph.edges {
        *edges_from.entry(&edge.from).or_default() += 1;
    }
    for (nth, edge) in context.graph.edges.iter().enumerate() {
        if edge.policy.copy_policy != CopyPolicy::MoveOnly {
            continue;
        }
        let (field, message, fix) = if edge.policy.readers == Readers::Multi {
            (
                "readers",
                format!(
                    "`{}` moves its payloads, and so cannot have several readers",
                    edge.id
                ),
                "use `readers: single`, or `copy_policy: shared_view`",
            )
        } else if edges_from[&edge.from] > 1 {
            (
                "copy_policy",
                format!(
                    "`{}` moves payloads that other edges from `{}` need as well",
                    edge.id, edge.from
                ),
                "use `copy_policy: shared_view`",
            )
        } else {
            continue;
        };
        let path = format!("edges[{nth}].policy.{field}");
        let finding = Diagnostic::new(Code::InvalidMoveOnlyMultireader, path, message);
        found.push(finding.edge(&edge.id).fix(fix));
    }
}

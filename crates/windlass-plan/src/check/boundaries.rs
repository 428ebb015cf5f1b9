//! Boundaries: roles fit the types, and a graph that is to be run has both kinds.

use super::context::Context;
use crate::catalog::Descriptor;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{BoundaryRole, GraphKind};

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (place, component) in context.graph.components.iter().enumerate() {
        let (Some(role), Some(descriptor)) = (component.boundary.role, context.descriptor(place))
        else {
            continue;
        };
        if let Some(why) = mismatch(role, descriptor) {
            let message = format!("`{}` cannot be {role}: its type {why}", component.id);
            let path = format!("components[{place}].boundary.role");
            let finding = Diagnostic::new(Code::BoundaryRoleMismatch, path, message);
            let fix = format!("use `role: {}`, or leave it out", descriptor.boundary_role);
            found.push(finding.component(&component.id).fix(fix));
        }
    }
    if context.graph.kind == GraphKind::Runnable {
        both_kinds(context, found);
    }
}

/// Why a type cannot have this role. A type that is at no boundary by itself may be put at one if
/// it has ports on the side of the graph.
fn mismatch(role: BoundaryRole, descriptor: &Descriptor) -> Option<String> {
    use BoundaryRole::{Input, InputOutput, Output, Processing};
    let receives = descriptor.open_ports || !descriptor.inputs.is_empty();
    let publishes = descriptor.open_ports || !descriptor.outputs.is_empty();
    match (descriptor.boundary_role, role) {
        (own, role) if own == role => None,
        (InputOutput, Input | Output) => None,
        (Processing, Input | InputOutput) if !publishes => Some("publishes nothing".to_owned()),
        (Processing, Output | InputOutput) if !receives => Some("receives nothing".to_owned()),
        (Processing, _) => None,
        (own, _) => Some(format!("is {own}")),
    }
}

fn both_kinds(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let roles: Vec<Option<BoundaryRole>> = (0..context.graph.components.len())
        .map(|place| context.role(place))
        .collect();
    let unknown = roles.contains(&None);
    let kinds = [
        ("an input", BoundaryRole::Input),
        ("an output", BoundaryRole::Output),
    ];
    for (what, wanted) in kinds {
        let is_there = |role: &Option<BoundaryRole>| {
            *role == Some(wanted) || *role == Some(BoundaryRole::InputOutput)
        };
        if roles.iter().any(is_there) {
            continue;
        }
        // An unknown type may well be the boundary that is missing.
        let (code, message) = match unknown {
            true => (
                Code::DiagnosticNote,
                format!(
                    "no component is known to be {what} boundary; the types of some are unknown"
                ),
            ),
            false => (
                Code::GraphValidationError,
                format!("a runnable graph needs {what} boundary, and this one has none"),
            ),
        };
        let fix =
            format!("set `boundary: {{role: {wanted}}}` of a component, or `kind: internal_test`");
        found.push(Diagnostic::new(code, "graph.kind", message).fix(fix));
    }
}

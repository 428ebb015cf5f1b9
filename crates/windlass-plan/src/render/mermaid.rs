//! As mermaid: a loop is a box around its members, a deferred edge is dotted.

use std::fmt::Write;

use super::{is_solid, label};
use crate::compile::{Plan, Region};

pub(super) fn draw(plan: &Plan) -> String {
    let mut out = String::from("flowchart LR\n");
    for &place in &plan.order {
        draw_region(plan, &plan.regions[place], &mut out);
    }
    for (edge, ends) in plan.graph.edges.iter().zip(&plan.edges) {
        let label = quoted(&label(edge));
        let arrow = match is_solid(edge) {
            true => format!("-->|{label}|"),
            false => format!("-.->|{label}|"),
        };
        let _ = writeln!(out, "  c{} {arrow} c{}", ends.from, ends.to);
    }
    out
}

fn draw_region(plan: &Plan, region: &Region, out: &mut String) {
    let node = |component: usize| {
        let component = &plan.graph.components[component];
        quoted(&format!("{}<br/>{}", component.id, component.type_name))
    };
    match region.composite_loop {
        None => {
            let component = region.components[0];
            let _ = writeln!(out, "  c{component}[{}]", node(component));
        }
        Some(composite) => {
            let kind = plan.graph.loops[composite].policy.kind;
            let title = quoted(&format!("{} ({kind})", region.id));
            let _ = writeln!(out, "  subgraph l{composite}[{title}]");
            for &component in &region.components {
                let _ = writeln!(out, "    c{component}[{}]", node(component));
            }
            out.push_str("  end\n");
        }
    }
}

/// Mermaid has entities for what would end a text.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "#quot;"))
}

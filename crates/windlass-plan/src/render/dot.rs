//! As dot, for graphviz: a loop is a cluster, a deferred edge is dashed.

use std::fmt::Write;

use super::{is_solid, label};
use crate::compile::Plan;

pub(super) fn draw(plan: &Plan) -> String {
    let mut out = format!("digraph {} {{\n", quoted(&plan.graph.name));
    out.push_str("  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    out.push_str("  edge [fontname=\"sans-serif\", fontsize=10];\n");
    for &place in &plan.order {
        let region = &plan.regions[place];
        let indent = match region.composite_loop {
            Some(composite) => {
                let _ = writeln!(out, "  subgraph cluster_{composite} {{");
                let kind = plan.graph.loops[composite].policy.kind;
                let title = quoted(&format!("{} ({kind})", region.id));
                let _ = writeln!(out, "    label={title};");
                "    "
            }
            None => "  ",
        };
        for &member in &region.components {
            let component = &plan.graph.components[member];
            let text = format!("{}\n{}", component.id, component.type_name);
            let id = quoted(&component.id);
            let _ = writeln!(out, "{indent}{id} [label={}];", quoted(&text));
        }
        if region.composite_loop.is_some() {
            out.push_str("  }\n");
        }
    }
    for edge in &plan.graph.edges {
        let style = if is_solid(edge) { "solid" } else { "dashed" };
        let _ = writeln!(
            out,
            "  {} -> {} [label={}, style={style}];",
            quoted(&edge.from.component),
            quoted(&edge.to.component),
            quoted(&label(edge)),
        );
    }
    out.push_str("}\n");
    out
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

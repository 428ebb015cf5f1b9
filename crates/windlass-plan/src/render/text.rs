//! As text: the regions in the order in which they run, and where each sends to.

use std::fmt::Write;

use super::label;
use crate::compile::Plan;

pub(super) fn draw(plan: &Plan) -> String {
    let graph = &plan.graph;
    let mut out = format!("graph {} ({})\n", graph.name, graph.kind);
    for (number, &place) in plan.order.iter().enumerate() {
        let region = &plan.regions[place];
        if let Some(composite) = region.composite_loop {
            let policy = &graph.loops[composite].policy;
            let passes = policy.max_iterations.max(1);
            let _ = writeln!(
                out,
                "{:>3}. {} (loop, {}, at most {passes} passes)",
                number + 1,
                region.id,
                policy.kind
            );
        }
        for &member in &region.components {
            let component = &graph.components[member];
            let lead = match region.composite_loop {
                Some(_) => "       - ".to_owned(),
                None => format!("{:>3}. ", number + 1),
            };
            let lane = &component.execution.lane;
            let _ = writeln!(
                out,
                "{lead}{}  {} @ {lane}",
                component.id, component.type_name
            );
            for (_, edge) in graph.outgoing(&component.id) {
                let _ = writeln!(out, "        └▶ {}  {}", edge.to.component, label(edge));
            }
        }
    }
    out
}

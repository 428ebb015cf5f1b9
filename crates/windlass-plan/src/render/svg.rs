//! As SVG: columns by how far a region is from the beginning, a box per component, a frame per
//! loop.

use std::fmt::Write;

use super::{is_solid, label};
use crate::compile::Plan;

const BOX_WIDTH: f64 = 190.0;
const BOX_HEIGHT: f64 = 44.0;
const COLUMN: f64 = 290.0;
const ROW: f64 = 76.0;
const MARGIN: f64 = 40.0;
const STYLE: &str = "<style>\
text{font:12px sans-serif;fill:#1b1f24}.type{font-size:10px;fill:#57606a}.edge{font-size:10px;fill:#57606a}\
.box{fill:#f6f8fa;stroke:#57606a}.loop{fill:#ddf4ff;fill-opacity:.5;stroke:#0969da;stroke-dasharray:4 3}\
.line{fill:none;stroke:#57606a}.deferred{stroke-dasharray:5 4}</style>";

/// Where the boxes are.
struct Layout {
    /// The upper left corner of each component.
    corners: Vec<(f64, f64)>,
    width: f64,
    height: f64,
}

pub(super) fn draw(plan: &Plan) -> String {
    let layout = lay_out(plan);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{0}\" height=\"{1}\">",
        layout.width, layout.height
    );
    out.push_str(STYLE);
    out.push_str("<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#57606a\"/></marker></defs>\n");
    draw_loops(plan, &layout, &mut out);
    draw_edges(plan, &layout, &mut out);
    draw_boxes(plan, &layout, &mut out);
    out.push_str("</svg>\n");
    out
}

fn lay_out(plan: &Plan) -> Layout {
    let columns = region_columns(plan);
    let mut used = vec![0_usize; columns.iter().max().map_or(0, |last| last + 1)];
    let mut corners = vec![(0.0, 0.0); plan.nodes.len()];
    for &place in &plan.order {
        let column = columns[place];
        for &member in &plan.regions[place].components {
            let x = MARGIN + column as f64 * COLUMN;
            let y = MARGIN + used[column] as f64 * ROW;
            corners[member] = (x, y);
            used[column] += 1;
        }
    }
    let rows = used.iter().max().copied().unwrap_or(0);
    Layout {
        corners,
        width: 2.0 * MARGIN + used.len().max(1) as f64 * COLUMN - (COLUMN - BOX_WIDTH),
        height: 2.0 * MARGIN + rows as f64 * ROW,
    }
}

/// The longest way to each region from one without predecessors.
fn region_columns(plan: &Plan) -> Vec<usize> {
    let mut columns = vec![0; plan.regions.len()];
    for &place in &plan.order {
        for &next in &plan.regions[place].outgoing {
            columns[next] = columns[next].max(columns[place] + 1);
        }
    }
    columns
}

fn draw_loops(plan: &Plan, layout: &Layout, out: &mut String) {
    for region in plan.regions.iter().filter(|r| r.composite_loop.is_some()) {
        let corners = region.components.iter().map(|&c| layout.corners[c]);
        let top = corners.clone().fold(f64::MAX, |top, (_, y)| top.min(y));
        let bottom = corners.clone().fold(0.0, |low: f64, (_, y)| low.max(y));
        let left = corners.fold(f64::MAX, |left, (x, _)| left.min(x));
        let _ = writeln!(
            out,
            "<rect class=\"loop\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\"/><text class=\"edge\" x=\"{0}\" y=\"{}\">{}</text>",
            left - 12.0,
            top - 12.0,
            BOX_WIDTH + 24.0,
            bottom - top + BOX_HEIGHT + 24.0,
            top - 16.0,
            escaped(&region.id),
        );
    }
}

fn draw_edges(plan: &Plan, layout: &Layout, out: &mut String) {
    for (edge, ends) in plan.graph.edges.iter().zip(&plan.edges) {
        let (x1, y1) = layout.corners[ends.from];
        let (x2, y2) = layout.corners[ends.to];
        let (x1, y1) = (x1 + BOX_WIDTH, y1 + BOX_HEIGHT / 2.0);
        let y2 = y2 + BOX_HEIGHT / 2.0;
        let bend = ((x2 - x1).abs() / 2.0).max(40.0);
        let class = if is_solid(edge) {
            "line"
        } else {
            "line deferred"
        };
        let _ = writeln!(
            out,
            "<path class=\"{class}\" d=\"M{x1} {y1}C{} {y1} {} {y2} {x2} {y2}\" marker-end=\"url(#tip)\"/><text class=\"edge\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x1 + bend,
            x2 - bend,
            (x1 + x2) / 2.0,
            (y1 + y2) / 2.0 - 4.0,
            escaped(&label(edge)),
        );
    }
}

fn draw_boxes(plan: &Plan, layout: &Layout, out: &mut String) {
    for (component, &(x, y)) in plan.graph.components.iter().zip(&layout.corners) {
        let _ = writeln!(
            out,
            "<rect class=\"box\" x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"6\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text class=\"type\" x=\"{0}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x + BOX_WIDTH / 2.0,
            y + 19.0,
            escaped(&component.id),
            y + 34.0,
            escaped(&component.type_name),
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

//! `windlass graph plan`.

use std::fmt::Write;

use serde_json::Value;
use windlass::graph::compile::Plan;
use windlass::graph::component::{Catalog, Registry};
use windlass::graph::model::{Lane, LaneKind};
use windlass::graph::render::Picture;

use super::registry::registry;
use super::source;
use crate::args::{Format, Inspect};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &Inspect, terminal: &Terminal) -> Outcome {
    let registry = registry();
    let format = args.output.format;
    let Some(valid) = source::valid(&args.source, &registry, format, terminal)? else {
        return Ok(Verdict::Bad);
    };
    let plan = valid.compile()?;
    match format {
        Format::Text => terminal.print(&to_text(&plan))?,
        Format::Json => terminal.print_json(&to_json(&plan, &registry))?,
    }
    Ok(Verdict::Fine)
}

/// The plan with the roles that types have by themselves.
pub(crate) fn to_json(plan: &Plan, registry: &Registry) -> Value {
    plan.to_json(|type_name| Some(registry.descriptor(type_name)?.boundary_role))
}

fn to_text(plan: &Plan) -> String {
    let mut text = plan.draw(Picture::Text);
    text.push_str("lanes\n");
    for lane in &plan.graph.lanes {
        let _ = writeln!(text, "  {}  {}", lane.id, describe(lane));
    }
    text
}

fn describe(lane: &Lane) -> String {
    match lane.kind {
        LaneKind::EventLoop | LaneKind::IsolatedThread | LaneKind::ManualStep => {
            lane.kind.to_string()
        }
        LaneKind::FixedRate => format!("{}, every {:?}", lane.kind, lane.cadence()),
        LaneKind::ThreadPool => format!(
            "{}, max_threads {}, queue_capacity {}, overflow {}",
            lane.kind,
            lane.width(),
            lane.queue_capacity,
            lane.overflow
        ),
    }
}

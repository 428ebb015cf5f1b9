//! `windlass graph run`.

use serde_json::{Map, Value, json};
use windlass::graph::RunResult;
use windlass::graph::run::{HealthEvent, LaneGrant};

use super::execution::{Execution, error_json, health_json};
use crate::args::{Format, Run};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::{Terminal, pretty};

/// The counts of a run: their names here, and those of the metrics.
const COUNTS: &[(&str, &str)] = &[
    ("channel_publish_count", "runtime.channel.publish_count"),
    ("channel_delivery_count", "runtime.channel.delivery_count"),
    ("channel_drop_count", "runtime.channel.drop_count"),
    ("channel_reject_count", "runtime.channel.reject_count"),
    ("channel_overwrite_count", "runtime.channel.overwrite_count"),
    ("channel_lost_count", "runtime.channel.lost_count"),
    (
        "channel_stale_drop_count",
        "runtime.channel.stale_drop_count",
    ),
    (
        "channel_deadline_miss_count",
        "runtime.channel.deadline_miss_count",
    ),
    (
        "runtime_publication_committed",
        "runtime.publication.committed",
    ),
    (
        "unconnected_publish_count",
        "runtime.component.unconnected_publish_count",
    ),
    ("trace_event_count", "runtime.trace.event_count"),
];

/// How many invocations of the order are printed for people.
const ORDER_SHOWN: usize = 32;

pub(crate) fn run(args: &Run, terminal: &Terminal) -> Outcome {
    let format = args.output.format;
    let Some(execution) = Execution::prepare(&args.source, &args.types, format, terminal)? else {
        return Ok(Verdict::Bad);
    };
    let mut options = args.bounds.options().traced();
    // The events are counted here, and nobody looks at them.
    options.trace_capacity = 0;
    let result = execution.run(options, terminal)?;
    terminal.print(&match format {
        Format::Text => to_text(&execution, &result),
        Format::Json => pretty(&to_json(&execution, &result)),
    })?;
    Ok(Verdict::of_run(&result))
}

fn to_text(execution: &Execution, result: &RunResult) -> String {
    let mut text = format!(
        "ok: {}\ngraph: {}\nticks: {}\nstop_reason: {}\norder: {}\n",
        result.is_ok(),
        execution.name(),
        result.ticks,
        result.stop_reason,
        shortened(result)
    );
    for (name, metric) in COUNTS {
        text.push_str(&format!("{name}: {}\n", count(result, metric)));
    }
    for error in &result.errors {
        text.push_str(&format!("error: {error}\n"));
    }
    for event in &result.health {
        text.push_str(&format!("health: {}\n", health_line(event)));
    }
    for grant in &result.lane_grants {
        let lane = &grant.lane;
        for thread in &grant.threads {
            text.push_str(&format!("lane {lane}: {thread}\n"));
        }
        for refused in &grant.refused {
            text.push_str(&format!(
                "lane {lane}: refused {refused}; see `windlass doctor`\n"
            ));
        }
    }
    text
}

fn shortened(result: &RunResult) -> String {
    let shown = &result.order[..result.order.len().min(ORDER_SHOWN)];
    let text = shown.join(", ");
    match result.ticks > shown.len() as u64 {
        true => format!("{text}, ... ({} in all)", result.ticks),
        false => text,
    }
}

fn health_line(event: &HealthEvent) -> String {
    let place = match event.channel_id.as_str() {
        "" if event.component_id.is_empty() => format!("lane={}", event.lane),
        "" => format!("component={}", event.component_id),
        channel => format!("channel={channel}"),
    };
    let (count, first, last) = (event.count, event.first_epoch, event.last_epoch);
    let kind = event.kind;
    format!("{kind} {place} count={count} first_epoch={first} last_epoch={last}")
}

fn to_json(execution: &Execution, result: &RunResult) -> Value {
    let grant = |grant: &LaneGrant| json!({ "lane": grant.lane, "threads": grant.threads, "refused": grant.refused });
    let mut document = json!({
        "ok": result.is_ok(),
        "graph": execution.name(),
        "ticks": result.ticks,
        "epochs": result.epochs,
        "stop_reason": result.stop_reason.name(),
        "order": result.order,
        "errors": result.errors.iter().map(error_json).collect::<Vec<_>>(),
        "health_events": result.health.iter().map(health_json).collect::<Vec<_>>(),
        "lane_grants": result.lane_grants.iter().map(grant).collect::<Vec<_>>(),
        "stubs": execution.stubs,
    });
    if let Some(document) = document.as_object_mut() {
        let counts = COUNTS.iter();
        let counts =
            counts.map(|(name, metric)| ((*name).to_owned(), json!(count(result, metric))));
        document.extend(counts.collect::<Map<_, _>>());
    }
    document
}

/// A count is whole; as a metric it is a float.
fn count(result: &RunResult, metric: &str) -> u64 {
    result.metrics.sum(metric) as u64
}

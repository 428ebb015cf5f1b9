//! `windlass graph run`.

use std::collections::BTreeMap;

use serde::Serialize;
use windlass::graph::run::{HealthEvent, LaneGrant, Loss, LossKind};
use windlass::graph::{RunResult, StopReason};

use super::execution::{ErrorDocument, Execution, HealthDocument};
use crate::args::{Format, Run};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

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

/// How many losses the last line names.
const LOSSES_SHOWN: usize = 8;
/// How many invocations of the order are printed for people.
const ORDER_SHOWN: usize = 32;

pub(crate) fn run(args: &Run, terminal: &Terminal) -> Outcome {
    let format = args.output.format;
    let Some(execution) = Execution::prepare(&args.graph.source, &args.types, format, terminal)?
    else {
        return Ok(Verdict::Bad);
    };
    let mut options = args.graph.bounds.options().traced();
    // The events are only counted.
    options.trace_capacity = 0;
    let result = execution.run(options, terminal)?;
    let incomplete = incomplete(args, &result);
    match format {
        Format::Text => {
            let mut text = to_text(&execution, &result);
            if !incomplete.is_empty() {
                text.push_str(&last_line(&incomplete, args.strict));
            }
            terminal.print(&text)?;
        }
        Format::Json => terminal.print_json(&Document::new(&execution, &result))?,
    }
    Ok(match Verdict::of_run(&result) {
        Verdict::Fine if args.strict => Verdict::fine_if(incomplete.is_empty()),
        verdict => verdict,
    })
}

/// What was dropped, refused or not delivered, a phrase for each; and that the run did not come to
/// its end.
fn incomplete(args: &Run, result: &RunResult) -> Vec<String> {
    let mut incomplete: Vec<String> = result.losses.iter().map(ToString::to_string).collect();
    // What fails in invocations is among the losses.
    let errors = result.errors.iter();
    let errors = errors.filter(|error| !error.fatal && error.phase != "execute");
    incomplete.extend(errors.map(ToString::to_string));
    let bounds = &args.graph.bounds;
    let at_bound = result.stop_reason == StopReason::TickBound;
    if bounds.until_idle && bounds.steps == 0 && at_bound {
        incomplete.push(format!(
            "the graph was not idle after {} epochs",
            result.epochs
        ));
    }
    incomplete
}

/// What did not go as it should although nothing failed, in one line.
fn last_line(incomplete: &[String], strict: bool) -> String {
    let shown = &incomplete[..incomplete.len().min(LOSSES_SHOWN)];
    let mut text = format!("incomplete: {}", shown.join("; "));
    if incomplete.len() > shown.len() {
        text.push_str(&format!("; and {} more", incomplete.len() - shown.len()));
    }
    text.push_str(match strict {
        true => "; failed because of --strict\n",
        false => "; --strict makes this fail\n",
    });
    text
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

/// The document that is printed.
#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    graph: &'a str,
    ticks: u64,
    epochs: u64,
    stop_reason: StopReason,
    order: &'a [String],
    errors: Vec<ErrorDocument<'a>>,
    health_events: Vec<HealthDocument<'a>>,
    lane_grants: Vec<GrantDocument<'a>>,
    losses: Vec<LossDocument<'a>>,
    stubs: &'a [String],
    #[serde(flatten)]
    counts: BTreeMap<&'static str, u64>,
}

impl<'a> Document<'a> {
    fn new(execution: &'a Execution, result: &'a RunResult) -> Document<'a> {
        let counts = COUNTS.iter();
        Document {
            ok: result.is_ok(),
            graph: execution.name(),
            ticks: result.ticks,
            epochs: result.epochs,
            stop_reason: result.stop_reason,
            order: &result.order,
            errors: ErrorDocument::of(result),
            health_events: HealthDocument::of(result),
            lane_grants: result.lane_grants.iter().map(GrantDocument::new).collect(),
            losses: result.losses.iter().map(LossDocument::new).collect(),
            stubs: &execution.stubs,
            counts: counts
                .map(|&(name, metric)| (name, count(result, metric)))
                .collect(),
        }
    }
}

/// What the threads of a lane were granted.
#[derive(Serialize)]
struct GrantDocument<'a> {
    lane: &'a str,
    threads: &'a [String],
    refused: &'a [String],
}

impl<'a> GrantDocument<'a> {
    fn new(grant: &'a LaneGrant) -> GrantDocument<'a> {
        GrantDocument {
            lane: &grant.lane,
            threads: &grant.threads,
            refused: &grant.refused,
        }
    }
}

/// What was dropped, refused or not delivered.
#[derive(Serialize)]
struct LossDocument<'a> {
    kind: LossKind,
    subject: &'a str,
    count: u64,
}

impl<'a> LossDocument<'a> {
    fn new(loss: &'a Loss) -> LossDocument<'a> {
        LossDocument {
            kind: loss.kind,
            subject: &loss.subject,
            count: loss.count,
        }
    }
}

/// A count is whole; as a metric it is a float.
fn count(result: &RunResult, metric: &str) -> u64 {
    result.metrics.sum(metric) as u64
}

//! Lanes: what can be done on this machine, and what they will turn away.

use super::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{Lane, LaneKind, OnDeadlineMiss, Priority, RtPolicy, TriggerKind};

/// More workers than this is a mistake: each of them is a thread.
const MAX_THREADS: usize = 1024;
/// What the OS knows as niceness.
const NICENESS: std::ops::RangeInclusive<i32> = -20..=19;
/// What the OS knows as real-time priority.
const REAL_TIME: std::ops::RangeInclusive<i32> = 1..=99;

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for lane in &context.graph.lanes {
        rates(lane, found);
        advisory_fields(lane, context.host.cpus, found);
    }
    exclusive_cpus(context, found);
    narrow_pools(context, found);
}

fn rates(lane: &Lane, found: &mut Vec<Diagnostic>) {
    let mut error = |field: &str, message: String, fix: &str| {
        let path = format!("lanes.{}.{field}", lane.id);
        found.push(Diagnostic::new(Code::GraphValidationError, path, message).fix(fix));
    };
    if lane.max_threads > MAX_THREADS {
        let message = format!("{} workers are more than {MAX_THREADS}", lane.max_threads);
        error("max_threads", message, "use as many as there are CPUs");
    }
    if !lane.hz.is_finite() || lane.hz < 0.0 {
        error(
            "hz",
            format!("{} is no rate", lane.hz),
            "use a finite number of 0 or more",
        );
    }
    let on_the_clock = lane.kind == LaneKind::FixedRate && lane.wall_clock_enabled;
    if on_the_clock && lane.cadence().is_zero() {
        let message = format!("the lane `{}` follows the clock, and has no rate", lane.id);
        error("wall_clock_enabled", message, "set `period_ms` or `hz`");
    }
}

/// Fields that nothing can be done about, here or anywhere.
fn advisory_fields(lane: &Lane, cpus: usize, found: &mut Vec<Diagnostic>) {
    let mut ignored = |field: &str, message: String, fix: &str| {
        let path = format!("lanes.{}.{field}", lane.id);
        found.push(Diagnostic::new(Code::AdvisoryLaneFieldIgnored, path, message).fix(fix));
    };
    if lane.wall_clock_enabled && lane.kind != LaneKind::FixedRate {
        let message = format!(
            "wall_clock_enabled has no effect on a lane of type {}",
            lane.kind
        );
        ignored(
            "wall_clock_enabled",
            message,
            "remove it, or use `type: fixed_rate`",
        );
    }
    for (nth, cpu) in lane.cpu_affinity.iter().enumerate() {
        if *cpu >= cpus {
            let message = format!("there is no CPU {cpu} on this machine, which has {cpus}");
            ignored(
                &format!("cpu_affinity[{nth}]"),
                message,
                "name CPUs that exist",
            );
        }
    }
    if let Some(priority) = &lane.priority
        && Priority::named(priority).is_none()
    {
        let message = format!("{priority:?} is not the name of a class");
        let fix = format!("use one of: {}", Priority::NAMES.join(", "));
        ignored("priority", message, &fix);
    }
    if !NICENESS.contains(&lane.nice_priority) {
        let message = format!("{} is not a niceness", lane.nice_priority);
        ignored("nice_priority", message, "use -20 to 19");
    }
    let ignored_fields = lane.advisory_fields();
    if ignored_fields.contains(&"rt_policy") {
        let message = format!(
            "{:?} is not a real-time policy",
            lane.rt_policy.as_deref().unwrap_or("")
        );
        ignored("rt_policy", message, "use fifo, rr, deadline or none");
    }
    match lane.real_time() {
        Some(RtPolicy::Fifo | RtPolicy::RoundRobin) if !REAL_TIME.contains(&lane.rt_priority) => {
            let message = format!("{} is not a real-time priority", lane.rt_priority);
            ignored("rt_priority", message, "use 1 to 99");
        }
        Some(RtPolicy::Fifo | RtPolicy::RoundRobin) => {}
        Some(RtPolicy::Deadline) if lane.cadence().is_zero() => {
            let message = "the policy deadline needs a period".to_owned();
            ignored("rt_policy", message, "set `period_ms` or `hz`, or use fifo");
        }
        Some(RtPolicy::Deadline) if lane.rt_priority != 0 => {
            let message = "rt_priority has no effect on the policy deadline".to_owned();
            ignored("rt_priority", message, "remove it");
        }
        Some(RtPolicy::Deadline) => {}
        None if lane.rt_priority != 0 => {
            let message = "rt_priority has no effect without rt_policy".to_owned();
            ignored("rt_priority", message, "set `rt_policy: fifo` or `rr`");
        }
        None => {}
    }
    if lane.per_component && lane.kind != LaneKind::IsolatedThread {
        let message = format!(
            "per_component has no effect on a lane of type {}",
            lane.kind
        );
        let fix = "remove it, or use `type: isolated_thread`";
        ignored("per_component", message, fix);
    }
    for (field, is_set) in [
        ("deadline_ms", !lane.deadline.is_zero()),
        (
            "on_deadline_miss",
            lane.on_deadline_miss != OnDeadlineMiss::Event,
        ),
    ] {
        if is_set && !lane.follows_clock() {
            let message = format!("{field} has no effect on a lane that follows no real clock");
            ignored(field, message, "set `wall_clock_enabled: true`");
        }
    }
    match lane.isolation_intent.as_deref() {
        Some("exclusive") if lane.cpu_affinity.is_empty() => {
            let message = "there are no CPUs to keep for this lane".to_owned();
            ignored("isolation_intent", message, "set `cpu_affinity`");
        }
        None | Some("exclusive") => {}
        Some(other) => {
            let message = format!("nothing is done about the isolation {other:?}");
            ignored("isolation_intent", message, "use `exclusive`, or remove it");
        }
    }
}

/// A CPU is kept for one lane at most, and the other lanes need a CPU, too.
fn exclusive_cpus(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut kept: Vec<(usize, &str)> = Vec::new();
    for lane in context.graph.lanes.iter().filter(|l| l.is_exclusive()) {
        let path = format!("lanes.{}.isolation_intent", lane.id);
        let mut ignored = |message: String, fix: &str| {
            let finding = Diagnostic::new(Code::AdvisoryLaneFieldIgnored, &*path, message);
            found.push(finding.fix(fix));
        };
        for &cpu in &lane.cpu_affinity {
            match kept.iter().find(|(other, _)| *other == cpu) {
                Some((_, other)) => {
                    let message = format!("CPU {cpu} is kept for the lane `{other}` already");
                    ignored(message, "give each exclusive lane CPUs of its own");
                }
                None => kept.push((cpu, &lane.id)),
            }
        }
        if (0..context.host.cpus).all(|cpu| kept.iter().any(|(there, _)| *there == cpu)) {
            let message = "no CPU is left for the other lanes".to_owned();
            ignored(message, "leave at least one CPU out");
        }
    }
}

/// Without a queue a pool admits as many invocations as it has workers. A channel that can hold
/// more for a component that runs once for each message makes the lane turn some away.
fn narrow_pools(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (place, component) in context.graph.components.iter().enumerate() {
        let Some(lane) = context.lane(&component.execution.lane) else {
            continue;
        };
        if lane.kind != LaneKind::ThreadPool
            || lane.queue_capacity > 0
            || component.trigger.coalesce
        {
            continue;
        }
        if !runs_for_each_message(component.trigger.kind) {
            continue;
        }
        for (nth, edge) in context.incoming(place) {
            if edge.policy.mode.is_latest_style() || edge.policy.capacity <= lane.width() {
                continue;
            }
            let message = format!(
                "the channel `{}` holds up to {} messages for `{}`, and the lane `{}` admits {} at a time: \
                 it has no queue, and turns the others away",
                edge.id,
                edge.policy.capacity,
                component.id,
                lane.id,
                lane.width()
            );
            let path = format!("edges[{nth}].policy.capacity");
            let fix = format!("set `queue_capacity` of the lane `{}`", lane.id);
            let finding = Diagnostic::new(Code::BackpressureRisk, path, message);
            found.push(finding.component(&component.id).edge(&edge.id).fix(fix));
        }
    }
}

fn runs_for_each_message(kind: TriggerKind) -> bool {
    matches!(
        kind,
        TriggerKind::AnyInput
            | TriggerKind::OnEvent
            | TriggerKind::Request
            | TriggerKind::TaskReady
            | TriggerKind::Watermark
            | TriggerKind::RateLimit
    )
}

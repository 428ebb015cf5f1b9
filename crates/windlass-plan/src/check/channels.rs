//! Channels: the policies of edges.

use std::collections::HashMap;

use super::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{Edge, EdgeKind, Endpoint, Mode, Overflow, Owner};

/// A queue that is longer than this makes its last message wait.
const DEEP_QUEUE: usize = 256;

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (nth, edge) in context.graph.edges.iter().enumerate() {
        policy(nth, edge, found);
        drops(nth, edge, found);
        risks(nth, edge, found);
    }
    state_writers(context, found);
    owners(context, found);
}

fn finding(code: Code, nth: usize, field: &str, edge: &Edge, message: String) -> Diagnostic {
    Diagnostic::new(code, format!("edges[{nth}].policy.{field}"), message).edge(&edge.id)
}

fn policy(nth: usize, edge: &Edge, found: &mut Vec<Diagnostic>) {
    let policy = &edge.policy;
    let mut invalid = |field: &str, message: String, fix: &str| {
        found.push(finding(Code::InvalidChannelPolicy, nth, field, edge, message).fix(fix));
    };
    if policy.capacity == 0 {
        invalid(
            "capacity",
            "a channel of capacity 0 holds nothing".to_owned(),
            "use 1 or more",
        );
    }
    if policy.mode.is_latest_style()
        && matches!(policy.overflow, Overflow::DropNewest | Overflow::Block)
    {
        let message = format!(
            "mode {} keeps the newest value, and overflow {} would refuse it",
            policy.mode, policy.overflow
        );
        invalid(
            "overflow",
            message,
            "use `overflow: overwrite`, or `mode: queue`",
        );
    }
    if policy.max_inflight > 0 && edge.kind != EdgeKind::Async {
        let message = format!(
            "max_inflight is for async edges, and this one is {}",
            edge.kind
        );
        invalid("max_inflight", message, "remove it, or use `kind: async`");
    }
}

/// What may not drop has no policy that drops.
fn drops(nth: usize, edge: &Edge, found: &mut Vec<Diagnostic>) {
    let policy = &edge.policy;
    if policy.allow_drop {
        return;
    }
    let mut invalid = |message: String, fix: &str| {
        found.push(finding(Code::InvalidChannelPolicy, nth, "allow_drop", edge, message).fix(fix));
    };
    if matches!(
        policy.overflow,
        Overflow::Overwrite | Overflow::DropOldest | Overflow::DropNewest
    ) {
        let message = format!(
            "nothing may be dropped, and overflow {} drops",
            policy.overflow
        );
        invalid(message, "use `overflow: reject` or `fail_fast`");
    }
    if !policy.lifespan.is_zero() {
        let message = "nothing may be dropped, and lifespan_ms drops what is too old".to_owned();
        invalid(message, "use `deadline_ms`, which only flags it");
    }
}

fn risks(nth: usize, edge: &Edge, found: &mut Vec<Diagnostic>) {
    let policy = &edge.policy;
    if policy.overflow == Overflow::Block {
        let message = format!(
            "when `{}` is full its producer is refused: nothing here ever blocks",
            edge.id
        );
        let risk = finding(Code::BackpressureRisk, nth, "overflow", edge, message);
        found.push(risk.fix("use `reject` if that is meant, or a larger capacity"));
    }
    if policy.slow_reader_drop_risk() {
        let message = format!(
            "a slow reader of `{}` misses what {} evicts",
            edge.id, policy.overflow
        );
        let risk = finding(Code::BackpressureRisk, nth, "readers", edge, message);
        found.push(risk.fix("use `overflow: reject`, or a larger capacity"));
    }
    if matches!(policy.mode, Mode::Queue | Mode::RingBuffer) && policy.capacity > DEEP_QUEUE {
        let message = format!(
            "up to {} messages may wait in `{}`, and the last one waits for all others",
            policy.capacity, edge.id
        );
        let risk = finding(
            Code::HighQueueDepthLatencyRisk,
            nth,
            "capacity",
            edge,
            message,
        );
        found.push(risk.fix(format!("use {DEEP_QUEUE} or less")));
    }
}

/// A target has one writer of state.
fn state_writers(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut first: HashMap<&Endpoint, &Edge> = HashMap::new();
    let states = context.graph.edges.iter().enumerate();
    for (nth, edge) in states.filter(|(_, edge)| edge.kind == EdgeKind::State) {
        let Some(other) = first.get(&edge.to) else {
            first.insert(&edge.to, edge);
            continue;
        };
        let message = format!("`{}` writes the state of `{}` already", other.id, edge.to);
        let finding = Diagnostic::new(Code::MultiStateWriter, format!("edges[{nth}].to"), message);
        found.push(
            finding
                .component(&other.from.component)
                .component(&edge.from.component)
                .edge(&other.id)
                .edge(&edge.id)
                .fix("let one component write it"),
        );
    }
}

/// What a producer owns it publishes over one edge.
fn owners(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let mut first: HashMap<&Endpoint, &Edge> = HashMap::new();
    for (nth, edge) in context.graph.edges.iter().enumerate() {
        let Some(other) = first.get(&edge.from) else {
            first.insert(&edge.from, edge);
            continue;
        };
        if edge.policy.owner == Owner::Producer {
            let message = format!(
                "`{}` owns its payloads, and `{}` takes them already",
                edge.from, other.id
            );
            let finding = finding(Code::InvalidChannelPolicy, nth, "owner", edge, message);
            found.push(finding.edge(&other.id).fix("use `owner: runtime`"));
        }
    }
}

//! One of `lanes`.

use std::rc::Rc;

use super::walk::{At, Fields, Walk};
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{Lane, LaneKind, LaneOverflow, OnDeadlineMiss, OsPolicy, OverrunPolicy};
use crate::source::{Key, Node, Scalar, Style};

/// A lane; none if its id cannot be read. What else cannot be read has its default.
pub(super) fn lane(walk: &mut Walk<'_>, key: &Key, at: At<'_>) -> Option<Lane> {
    let id = lane_id(walk, key, &at.path)?;
    let Some(mut fields) = walk.fields(at) else {
        return Some(Lane::new(id, LaneKind::EventLoop));
    };
    let kind = fields
        .need(walk, "type")
        .and_then(|at| lane_kind(walk, &at));
    let mut lane = Lane::new(id, kind.unwrap_or(LaneKind::EventLoop));
    if let Some(at) = fields.get(walk, "hz") {
        lane.hz = walk.number(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "period_ms") {
        lane.period = walk.duration_ms(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "tick_budget_ms") {
        lane.tick_budget = walk.duration_ms(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "wall_clock_enabled") {
        lane.wall_clock_enabled = walk.bool(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "overrun_policy") {
        lane.overrun_policy = walk
            .one_of(&at, OverrunPolicy::NAMES, OverrunPolicy::named)
            .unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "max_threads") {
        lane.max_threads = walk.count(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "queue_capacity") {
        lane.queue_capacity = walk.count(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "overflow") {
        lane.overflow = walk
            .one_of(&at, LaneOverflow::NAMES, LaneOverflow::named)
            .unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "max_callback_ms") {
        lane.max_callback = walk.duration_ms(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "priority") {
        lane.priority = walk.text_or_none(&at);
    }
    if let Some(at) = fields.get(walk, "thread_name") {
        lane.thread_name = walk.text(&at).filter(|name| !name.is_empty());
    }
    if let Some(at) = fields.get(walk, "cpu_affinity") {
        lane.cpu_affinity = cpus(walk, &at);
    }
    if let Some(at) = fields.get(walk, "nice_priority") {
        lane.nice_priority = walk.signed(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "rt_policy") {
        lane.rt_policy = walk.text_or_none(&at);
    }
    if let Some(at) = fields.get(walk, "rt_priority") {
        lane.rt_priority = walk.signed(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "isolation_intent") {
        lane.isolation_intent = walk.text_or_none(&at);
    }
    if walk.version >= 2 {
        since_version_2(walk, &mut fields, &mut lane);
    }
    fields.finish(walk);
    Some(lane)
}

fn lane_kind(walk: &mut Walk<'_>, at: &At<'_>) -> Option<LaneKind> {
    let code = Code::UnsupportedLaneType;
    let kind = walk.one_of_or(at, LaneKind::NAMES, LaneKind::named, code)?;
    let is_new = matches!(kind, LaneKind::IsolatedThread | LaneKind::ManualStep);
    if is_new && walk.version < 2 {
        let message = format!("lanes of type {kind} came with schema version 2");
        let finding = Diagnostic::new(code, at.path.clone(), message);
        walk.mark_unread(&at.path);
        walk.report(finding.fix("write `schema_version: 2`"), Some(at.span));
        return None;
    }
    Some(kind)
}

fn since_version_2(walk: &mut Walk<'_>, fields: &mut Fields<'_>, lane: &mut Lane) {
    if let Some(at) = fields.get(walk, "per_component") {
        lane.per_component = walk.bool(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "os_policy") {
        lane.os_policy = walk
            .one_of(&at, OsPolicy::NAMES, OsPolicy::named)
            .unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "mlock") {
        lane.mlock = walk.bool(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "deadline_ms") {
        lane.deadline = walk.duration_ms(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "on_deadline_miss") {
        lane.on_deadline_miss = walk
            .one_of(&at, OnDeadlineMiss::NAMES, OnDeadlineMiss::named)
            .unwrap_or_default();
    }
}

/// A lane's key is its id, so it obeys the rules of ids.
fn lane_id(walk: &mut Walk<'_>, key: &Key, path: &str) -> Option<String> {
    let scalar = Scalar {
        text: key.text.clone(),
        style: Style::Text,
    };
    let node = Rc::new(Node::scalar(scalar, key.span));
    let at = At {
        path: path.to_owned(),
        node: &node,
        span: key.span,
    };
    walk.id(&at, None)
}

fn cpus(walk: &mut Walk<'_>, at: &At<'_>) -> Vec<usize> {
    let mut cpus = Vec::new();
    for (nth, item) in walk.items(at).iter().enumerate() {
        let item = walk.at(format!("{}[{nth}]", at.path), item);
        cpus.extend(walk.count(&item));
    }
    cpus
}

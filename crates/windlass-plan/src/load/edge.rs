//! One of `edges`.

use super::expand::Names;
use super::walk::{At, Walk};
use crate::model::{
    ClockDomain, CopyPolicy, Edge, EdgeKind, EdgePolicy, Endpoint, Mode, Overflow, Owner, Readers,
};

/// An edge. An id or an end that cannot be read is empty; a kind that cannot be read is `delay`,
/// which makes no cycle.
pub(super) fn edge(walk: &mut Walk<'_>, at: At<'_>, names: Option<&Names>) -> Edge {
    let nowhere = || Endpoint {
        component: String::new(),
        port: String::new(),
    };
    let Some(mut fields) = walk.fields(at) else {
        return Edge {
            id: String::new(),
            from: nowhere(),
            to: nowhere(),
            kind: EdgeKind::Delay,
            policy: EdgePolicy::default(),
        };
    };
    let prefix = names.map(|names| names.scope.id.as_str());
    let id = fields.need(walk, "id").and_then(|at| walk.id(&at, prefix));
    let from = fields
        .need(walk, "from")
        .and_then(|at| endpoint(walk, &at, names));
    let to = fields
        .need(walk, "to")
        .and_then(|at| endpoint(walk, &at, names));
    let kind = fields
        .need(walk, "kind")
        .and_then(|at| walk.one_of(&at, EdgeKind::NAMES, EdgeKind::named));
    let policy = fields.get(walk, "policy").map(|at| policy(walk, at));
    fields.finish(walk);
    Edge {
        id: id.unwrap_or_default(),
        from: from.unwrap_or_else(nowhere),
        to: to.unwrap_or_else(nowhere),
        kind: kind.unwrap_or(EdgeKind::Delay),
        policy: policy.unwrap_or_default(),
    }
}

fn endpoint(walk: &mut Walk<'_>, at: &At<'_>, names: Option<&Names>) -> Option<Endpoint> {
    let text = walk.text(at)?;
    let Some(mut end) = Endpoint::parse(&text) else {
        let message = format!("expected component.port, found {text:?}");
        walk.error(
            at,
            message,
            "name a component and one of its ports, with a dot between",
        );
        return None;
    };
    if let Some(names) = names {
        end.component = names.full(end.component);
    }
    Some(end)
}

fn policy(walk: &mut Walk<'_>, at: At<'_>) -> EdgePolicy {
    let mut policy = EdgePolicy::default();
    let Some(mut fields) = walk.fields(at) else {
        return policy;
    };
    if let Some(at) = fields.get(walk, "mode") {
        policy.mode = walk
            .one_of(&at, Mode::NAMES, Mode::named)
            .unwrap_or_default();
        policy.backpressure &= !policy.mode.is_latest_style();
    }
    if let Some(at) = fields.get(walk, "capacity") {
        policy.capacity = walk.count(&at).unwrap_or(1);
    }
    if let Some(at) = fields.get(walk, "overflow") {
        policy.overflow = walk
            .one_of(&at, Overflow::NAMES, Overflow::named)
            .unwrap_or_default();
        policy.backpressure &= matches!(policy.overflow, Overflow::Reject | Overflow::Block);
    }
    if let Some(at) = fields.get(walk, "lifespan_ms") {
        policy.lifespan = walk.duration_ms(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "deadline_ms") {
        policy.deadline = walk.duration_ms(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "max_inflight") {
        policy.max_inflight = walk.count(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "preserve_order") {
        policy.preserve_order = walk.bool(&at).unwrap_or(true);
    }
    if let Some(at) = fields.get(walk, "allow_drop") {
        policy.allow_drop = walk.bool(&at).unwrap_or(true);
    }
    if let Some(at) = fields.get(walk, "emit_health_events") {
        policy.emit_health_events = walk.bool(&at).unwrap_or(true);
    }
    if let Some(at) = fields.get(walk, "timestamp_domain") {
        policy.timestamp_domain = walk.one_of_or_none(&at, ClockDomain::NAMES, ClockDomain::named);
    }
    if let Some(at) = fields.get(walk, "copy_policy") {
        policy.copy_policy = walk
            .one_of(&at, CopyPolicy::NAMES, CopyPolicy::named)
            .unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "owner") {
        policy.owner = walk
            .one_of(&at, Owner::NAMES, Owner::named)
            .unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "readers") {
        policy.readers = walk
            .one_of(&at, Readers::NAMES, Readers::named)
            .unwrap_or_default();
    }
    fields.finish(walk);
    policy
}

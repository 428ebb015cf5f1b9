//! One of `composite_loops`.

use super::expand::Names;
use super::walk::{At, Walk};
use crate::model::{CompositeLoop, Convergence, LoopKind, LoopPolicy, PartialSuccess};

/// A loop. What cannot be read has its default, and an id that cannot be read is empty.
pub(super) fn composite_loop(
    walk: &mut Walk<'_>,
    at: At<'_>,
    names: Option<&Names>,
) -> CompositeLoop {
    let Some(mut fields) = walk.fields(at) else {
        return CompositeLoop {
            id: String::new(),
            components: Vec::new(),
            policy: LoopPolicy::new(LoopKind::FixedPoint),
        };
    };
    let prefix = names.map(|names| names.scope.id.as_str());
    let id = fields.need(walk, "id").and_then(|at| walk.id(&at, prefix));
    let members = fields.need(walk, "components").map(|at| walk.texts(&at));
    let policy = fields
        .need(walk, "loop_policy")
        .and_then(|at| policy(walk, at));
    fields.finish(walk);
    let members = members.unwrap_or_default().into_iter();
    CompositeLoop {
        id: id.unwrap_or_default(),
        components: match names {
            Some(names) => members.map(|id| names.full(id)).collect(),
            None => members.collect(),
        },
        policy: policy.unwrap_or_else(|| LoopPolicy::new(LoopKind::FixedPoint)),
    }
}

fn policy(walk: &mut Walk<'_>, at: At<'_>) -> Option<LoopPolicy> {
    let mut fields = walk.fields(at)?;
    let kind = fields
        .need(walk, "type")
        .and_then(|at| walk.one_of(&at, LoopKind::NAMES, LoopKind::named));
    let mut policy = LoopPolicy::new(kind.unwrap_or(LoopKind::FixedPoint));
    if let Some(at) = fields.get(walk, "budget_ms") {
        policy.budget = walk.duration_ms(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "max_iterations") {
        policy.max_iterations = walk.whole(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "convergence") {
        policy.convergence = walk.one_of_or_none(&at, Convergence::NAMES, Convergence::named);
    }
    if let Some(at) = fields.get(walk, "residual_threshold") {
        policy.residual_threshold = walk.number(&at);
    }
    if let Some(at) = fields.get(walk, "partial_success") {
        policy.partial_success =
            walk.one_of_or_none(&at, PartialSuccess::NAMES, PartialSuccess::named);
    }
    if let Some(at) = fields.get(walk, "max_inflight") {
        policy.max_inflight = walk.count(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "drop_policy") {
        policy.drop_policy = walk.overflow(&at);
    }
    if let Some(at) = fields.get(walk, "min_interval_ms") {
        policy.min_interval = walk.duration_ms(&at).unwrap_or_default();
    }
    fields.finish(walk);
    kind.map(|_| policy)
}

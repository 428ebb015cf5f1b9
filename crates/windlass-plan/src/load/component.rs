//! One of `components`.

use super::expand::Names;
use super::walk::{At, Fields, Walk};
use crate::model::{
    Boundary, BoundaryRole, Component, Condition, EventSource, EventSourceKind, OnError, Priority,
    TriggerKind, TriggerPolicy,
};

/// A component. What cannot be read has its default, and an id that cannot be read is empty.
pub(super) fn component(walk: &mut Walk<'_>, at: At<'_>, names: Option<&Names>) -> Component {
    let Some(mut fields) = walk.fields(at) else {
        return Component::new("", "", "");
    };
    let prefix = names.map(|names| names.scope.id.as_str());
    let id = fields.need(walk, "id").and_then(|at| walk.id(&at, prefix));
    let type_name = fields
        .need(walk, "type")
        .and_then(|at| type_name(walk, &at));
    let mut component = Component::new(id.unwrap_or_default(), type_name.unwrap_or_default(), "");
    if let Some(at) = fields.need(walk, "execution") {
        execution(walk, at, &mut component);
    }
    if let Some(at) = fields.get(walk, "depends_on") {
        let ids = walk.texts(&at).into_iter();
        component.depends_on = match names {
            Some(names) => ids.map(|id| names.full(id)).collect(),
            None => ids.collect(),
        };
    }
    if let Some(at) = fields.get(walk, "boundary") {
        component.boundary = boundary(walk, at);
    }
    if let Some(at) = fields.get(walk, "config") {
        component.config = walk.config(&at);
    }
    if let Some(at) = fields.get(walk, "event_sources") {
        let sources = event_sources(walk, &at);
        if !sources.is_empty() {
            component.event_sources = sources;
        }
    }
    if let Some(at) = fields.get(walk, "trigger_policy") {
        component.trigger = trigger(walk, at);
    }
    fields.finish(walk);
    component
}

fn type_name(walk: &mut Walk<'_>, at: &At<'_>) -> Option<String> {
    let name = walk.text(at)?;
    if name.is_empty() {
        walk.error(
            at,
            "a component's type must not be empty",
            "name a registered type",
        );
    }
    Some(name)
}

fn execution(walk: &mut Walk<'_>, at: At<'_>, component: &mut Component) {
    let Some(mut fields) = walk.fields(at) else {
        return;
    };
    let execution = &mut component.execution;
    if let Some(at) = fields.need(walk, "lane") {
        execution.lane = walk.text(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "reentrant") {
        execution.reentrant = walk.bool(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "priority") {
        execution.priority = walk
            .one_of(&at, Priority::NAMES, Priority::named)
            .unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "budget_ms") {
        execution.budget = walk.duration_ms(&at).unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "on_error") {
        execution.on_error = walk
            .one_of(&at, OnError::NAMES, OnError::named)
            .unwrap_or_default();
    }
    if walk.version >= 2
        && let Some(at) = fields.get(walk, "timeout_ms")
    {
        execution.timeout = walk.duration_ms(&at).unwrap_or_default();
    }
    fields.finish(walk);
}

fn boundary(walk: &mut Walk<'_>, at: At<'_>) -> Boundary {
    let Some(mut fields) = walk.fields(at) else {
        return Boundary::default();
    };
    let role = fields.get(walk, "role");
    let descriptor = fields.get(walk, "descriptor");
    fields.finish(walk);
    Boundary {
        role: role.and_then(|at| walk.one_of(&at, BoundaryRole::NAMES, BoundaryRole::named)),
        descriptor: descriptor.and_then(|at| walk.text(&at)).unwrap_or_default(),
    }
}

fn event_sources(walk: &mut Walk<'_>, at: &At<'_>) -> Vec<EventSource> {
    let mut sources = Vec::new();
    for (nth, item) in walk.items(at).iter().enumerate() {
        let at = walk.at(format!("{}[{nth}]", at.path), item);
        let Some(mut fields) = walk.fields(at) else {
            continue;
        };
        let mut source = EventSource::default();
        if let Some(at) = fields.get(walk, "id") {
            source.id = walk.text(&at).unwrap_or_default();
        }
        if let Some(at) = fields.get(walk, "type") {
            source.kind = walk
                .one_of(&at, EventSourceKind::NAMES, EventSourceKind::named)
                .unwrap_or_default();
        }
        source.inputs = inputs(walk, &mut fields);
        if let Some(at) = fields.get(walk, "period_ms") {
            source.period = walk.duration_ms(&at).unwrap_or_default();
        }
        fields.finish(walk);
        sources.push(source);
    }
    sources
}

fn trigger(walk: &mut Walk<'_>, at: At<'_>) -> TriggerPolicy {
    let mut trigger = TriggerPolicy::default();
    let Some(mut fields) = walk.fields(at) else {
        return trigger;
    };
    if let Some(at) = fields.get(walk, "type") {
        trigger.kind = walk
            .one_of(&at, TriggerKind::NAMES, TriggerKind::named)
            .unwrap_or_default();
    }
    trigger.inputs = inputs(walk, &mut fields);
    if let Some(at) = fields.get(walk, "batch_size") {
        trigger.batch_size = walk.count(&at).unwrap_or_default();
    }
    let times = [
        ("batch_window_ms", &mut trigger.batch_window),
        ("sync_slop_ms", &mut trigger.sync_slop),
        ("min_interval_ms", &mut trigger.min_interval),
        ("max_latency_ms", &mut trigger.max_latency),
        ("watermark_lateness_ms", &mut trigger.watermark_lateness),
        ("debounce_window_ms", &mut trigger.debounce_window),
    ];
    for (name, time) in times {
        if let Some(at) = fields.get(walk, name) {
            *time = walk.duration_ms(&at).unwrap_or_default();
        }
    }
    if let Some(at) = fields.get(walk, "condition") {
        trigger.condition = walk
            .one_of(&at, Condition::NAMES, Condition::named)
            .unwrap_or_default();
    }
    if let Some(at) = fields.get(walk, "coalesce") {
        trigger.coalesce = walk.bool(&at).unwrap_or_default();
    }
    fields.finish(walk);
    trigger
}

/// `inputs`, or `input` for one.
fn inputs(walk: &mut Walk<'_>, fields: &mut Fields<'_>) -> Vec<String> {
    let several = fields.get(walk, "inputs");
    let one = fields.get(walk, "input");
    if let (Some(_), Some(at)) = (&several, &one) {
        let message = "`input` and `inputs` are both given, and mean the same";
        walk.error(at, message, "keep `inputs`");
    }
    match (several, one) {
        (Some(at), _) => walk.texts(&at),
        (None, Some(at)) => walk.text(&at).into_iter().collect(),
        (None, None) => Vec::new(),
    }
}

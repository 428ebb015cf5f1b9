//! The form of a graph file as a JSON Schema, for editors and other tools.

use serde_json::{Map, Value, json};

use crate::model::{
    BoundaryRole, ClockDomain, Condition, Convergence, CopyPolicy, EdgeKind, EventSourceKind,
    GraphKind, LaneKind, LaneOverflow, LoopKind, Mode, OnDeadlineMiss, OnError, OsPolicy, Overflow,
    OverrunPolicy, Owner, PartialSuccess, Priority, Readers, TriggerKind,
};

/// The form of a graph file of version 1 or 2 as a JSON Schema (draft 2020-12).
///
/// It is as strict about fields and names as [`crate::load()`]. Bodies of templates have a form of
/// their own, in which a string with a placeholder may stand for any scalar.
pub fn json_schema() -> Value {
    let exact = Form {
        placeholders: false,
    };
    let template = Form { placeholders: true };
    let lists = |form: &Form, suffix: &str| {
        [
            ("components", list(definition("component", suffix))),
            ("edges", list(definition("edge", suffix))),
            ("composite_loops", list(definition("loop", suffix))),
        ]
        .map(|(name, schema)| (name, form.may_be_empty(schema)))
    };
    let subgraph = exact.closed(
        [("id", exact.id())].into_iter().chain(lists(&exact, "")),
        &["id", "components"],
    );
    let body = [
        ("id", exact.id()),
        (
            "parameters",
            exact.may_be_empty(list(json!({"type": "string"}))),
        ),
    ];
    let template_schema = exact.closed(
        body.into_iter().chain(lists(&template, "_template")),
        &["id", "components"],
    );
    let instance = exact.closed(
        [
            ("id", exact.id()),
            ("template", exact.string()),
            (
                "parameters",
                json!({
                    "type": ["object", "null"],
                    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
                }),
            ),
        ],
        &["id", "template"],
    );
    let root = exact.closed(
        [
            ("schema_version", json!({"enum": [1, 2]})),
            ("graph", graph(&exact)),
            (
                "lanes",
                json!({
                    "type": "object",
                    "propertyNames": exact.id(),
                    "additionalProperties": lane(&exact, 2),
                }),
            ),
            ("components", list(definition("component", ""))),
            ("edges", list(definition("edge", ""))),
            (
                "composite_loops",
                exact.may_be_empty(list(definition("loop", ""))),
            ),
            ("subgraphs", exact.may_be_empty(list(subgraph))),
            ("templates", exact.may_be_empty(list(template_schema))),
            ("template_instances", exact.may_be_empty(list(instance))),
        ],
        &["schema_version", "graph", "lanes", "components", "edges"],
    );
    let mut schema = Map::new();
    schema.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    schema.insert("title".to_owned(), json!("Graph, schema version 1 or 2"));
    if let Value::Object(root) = root {
        schema.extend(root);
    }
    schema.insert(
        "if".to_owned(),
        json!({"properties": {"schema_version": {"const": 1}}}),
    );
    schema.insert("then".to_owned(), version_1(&exact));
    let definitions = json!({
        "component": component(&exact),
        "edge": edge(&exact),
        "loop": composite_loop(&exact),
        "component_template": component(&template),
        "edge_template": edge(&template),
        "loop_template": composite_loop(&template),
    });
    schema.insert("$defs".to_owned(), definitions);
    Value::Object(schema)
}

/// What version 1 has less: parts of lanes, and fields of components, wherever these are.
fn version_1(form: &Form) -> Value {
    let execution = json!({"properties": {"timeout_ms": false}});
    let components = json!({"items": {"properties": {"execution": execution}}});
    let bodies = json!({"items": {"properties": {"components": components}}});
    json!({
        "properties": {
            "lanes": {"additionalProperties": lane(form, 1)},
            "components": components,
            "subgraphs": bodies,
            "templates": bodies,
        },
    })
}

fn graph(form: &Form) -> Value {
    let clock = form.closed(
        [
            ("runtime_domain", form.names(&[ClockDomain::Steady.name()])),
            ("event_domain", form.names(ClockDomain::NAMES)),
        ],
        &[],
    );
    form.closed(
        [
            ("name", form.string()),
            ("kind", form.names(GraphKind::NAMES)),
            ("config", config()),
            ("clock", form.may_be_empty(clock)),
        ],
        &["name"],
    )
}

fn lane(form: &Form, version: u64) -> Value {
    let kinds = match version {
        1 => &["event_loop", "fixed_rate", "thread_pool"],
        _ => LaneKind::NAMES,
    };
    let since_version_2 = [
        ("per_component", form.bool()),
        ("os_policy", form.names(OsPolicy::NAMES)),
        ("mlock", form.bool()),
        ("deadline_ms", form.time()),
        ("on_deadline_miss", form.names(OnDeadlineMiss::NAMES)),
    ];
    let since_version_2 = since_version_2.into_iter().filter(|_| version > 1);
    form.closed(
        [
            ("type", form.required_names(kinds)),
            ("hz", form.number()),
            ("period_ms", form.time()),
            ("tick_budget_ms", form.time()),
            ("wall_clock_enabled", form.bool()),
            ("overrun_policy", form.names(OverrunPolicy::NAMES)),
            ("max_threads", form.count()),
            ("queue_capacity", form.count()),
            ("overflow", form.names(LaneOverflow::NAMES)),
            ("max_callback_ms", form.time()),
            (
                "priority",
                json!({"type": ["string", "number", "boolean", "null"]}),
            ),
            ("thread_name", form.optional_string()),
            (
                "cpu_affinity",
                form.may_be_empty(list(json!({"type": "integer", "minimum": 0}))),
            ),
            ("nice_priority", form.signed()),
            (
                "rt_policy",
                json!({"type": ["string", "number", "boolean", "null"]}),
            ),
            ("rt_priority", form.signed()),
            (
                "isolation_intent",
                json!({"type": ["string", "number", "boolean", "null"]}),
            ),
        ]
        .into_iter()
        .chain(since_version_2),
        &["type"],
    )
}

fn component(form: &Form) -> Value {
    let boundary = form.closed(
        [
            ("role", form.names(BoundaryRole::NAMES)),
            ("descriptor", form.optional_string()),
        ],
        &[],
    );
    let execution = form.closed(
        [
            ("lane", form.string()),
            ("reentrant", form.bool()),
            ("priority", form.names(Priority::NAMES)),
            ("budget_ms", form.time()),
            ("on_error", form.names(OnError::NAMES)),
            ("timeout_ms", form.time()),
        ],
        &["lane"],
    );
    form.closed(
        [
            ("id", form.id()),
            ("type", form.string()),
            ("execution", execution),
            ("depends_on", form.may_be_empty(list(form.string()))),
            ("boundary", form.may_be_empty(boundary)),
            ("config", config()),
            ("event_sources", form.may_be_empty(list(event_source(form)))),
            ("trigger_policy", form.may_be_empty(trigger(form))),
        ],
        &["id", "type", "execution"],
    )
}

fn event_source(form: &Form) -> Value {
    let schema = form.closed(
        [
            ("id", form.optional_string()),
            ("type", form.names(EventSourceKind::NAMES)),
            ("inputs", form.may_be_empty(list(form.string()))),
            ("input", form.optional_string()),
            ("period_ms", form.time()),
        ],
        &[],
    );
    one_of_the_inputs(schema)
}

fn trigger(form: &Form) -> Value {
    let schema = form.closed(
        [
            ("type", form.names(TriggerKind::NAMES)),
            ("inputs", form.may_be_empty(list(form.string()))),
            ("input", form.optional_string()),
            ("batch_size", form.count()),
            ("batch_window_ms", form.time()),
            ("sync_slop_ms", form.time()),
            ("min_interval_ms", form.time()),
            ("max_latency_ms", form.time()),
            ("watermark_lateness_ms", form.time()),
            ("debounce_window_ms", form.time()),
            ("condition", form.names(Condition::NAMES)),
            ("coalesce", form.bool()),
        ],
        &[],
    );
    one_of_the_inputs(schema)
}

/// `input` and `inputs` say the same, so only one of them may be there.
fn one_of_the_inputs(mut schema: Value) -> Value {
    schema["not"] = json!({"required": ["input", "inputs"]});
    schema
}

fn edge(form: &Form) -> Value {
    let policy = form.closed(
        [
            ("mode", form.names(Mode::NAMES)),
            ("capacity", form.count()),
            ("overflow", form.names(Overflow::NAMES)),
            ("lifespan_ms", form.time()),
            ("deadline_ms", form.time()),
            ("max_inflight", form.count()),
            ("preserve_order", form.bool()),
            ("allow_drop", form.bool()),
            ("emit_health_events", form.bool()),
            ("timestamp_domain", form.names_or_empty(ClockDomain::NAMES)),
            ("copy_policy", form.names(CopyPolicy::NAMES)),
            ("owner", form.names(Owner::NAMES)),
            ("readers", form.names(Readers::NAMES)),
        ],
        &[],
    );
    form.closed(
        [
            ("id", form.id()),
            ("from", form.endpoint()),
            ("to", form.endpoint()),
            ("kind", form.required_names(EdgeKind::NAMES)),
            ("policy", form.may_be_empty(policy)),
        ],
        &["id", "from", "to", "kind"],
    )
}

fn composite_loop(form: &Form) -> Value {
    let policy = form.closed(
        [
            ("type", form.required_names(LoopKind::NAMES)),
            ("budget_ms", form.time()),
            ("max_iterations", form.count()),
            ("convergence", form.names_or_empty(Convergence::NAMES)),
            ("residual_threshold", form.number()),
            (
                "partial_success",
                form.names_or_empty(PartialSuccess::NAMES),
            ),
            ("max_inflight", form.count()),
            ("drop_policy", form.names_or_empty(Overflow::NAMES)),
            ("min_interval_ms", form.time()),
        ],
        &["type"],
    );
    form.closed(
        [
            ("id", form.id()),
            ("components", list(form.string())),
            ("loop_policy", policy),
        ],
        &["id", "components", "loop_policy"],
    )
}

/// A `config`: the user's own.
fn config() -> Value {
    json!({"type": ["object", "null"]})
}

fn definition(name: &str, suffix: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}{suffix}")})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// How scalars look, here and in templates.
struct Form {
    /// Whether a string with a placeholder may stand for any scalar.
    placeholders: bool,
}

impl Form {
    /// This, or a placeholder.
    fn or_placeholder(&self, schema: Value) -> Value {
        match self.placeholders {
            true => json!({"anyOf": [schema, {"type": "string", "pattern": r"\{\{.*\}\}"}]}),
            false => schema,
        }
    }

    /// A map with these fields and no others.
    fn closed<'a>(
        &self,
        fields: impl IntoIterator<Item = (&'a str, Value)>,
        required: &[&str],
    ) -> Value {
        let fields: Map<String, Value> = fields
            .into_iter()
            .map(|(name, schema)| (name.to_owned(), schema))
            .collect();
        let mut schema = json!({
            "type": "object",
            "properties": fields,
            "additionalProperties": false,
            "required": required,
        });
        if self.placeholders {
            // Such a key may become any field.
            schema["patternProperties"] = json!({r"\{\{.*\}\}": true});
        }
        schema
    }

    /// This, or nothing, which is as if the field were left out.
    fn may_be_empty(&self, schema: Value) -> Value {
        json!({"anyOf": [schema, {"type": "null"}]})
    }

    fn id(&self) -> Value {
        self.or_placeholder(json!({"type": "string", "pattern": r"^[^\s\p{Cc}]+$"}))
    }

    fn string(&self) -> Value {
        json!({"type": "string"})
    }

    fn optional_string(&self) -> Value {
        json!({"type": ["string", "null"]})
    }

    fn endpoint(&self) -> Value {
        self.or_placeholder(json!({"type": "string", "pattern": r"^.+\.[^.]+$"}))
    }

    fn bool(&self) -> Value {
        self.or_placeholder(json!({"type": ["boolean", "null"]}))
    }

    fn count(&self) -> Value {
        self.or_placeholder(json!({"type": ["integer", "null"], "minimum": 0}))
    }

    fn signed(&self) -> Value {
        self.or_placeholder(json!({"type": ["integer", "null"]}))
    }

    fn number(&self) -> Value {
        self.or_placeholder(json!({"type": ["number", "null"], "minimum": 0}))
    }

    fn time(&self) -> Value {
        self.or_placeholder(json!({"type": ["number", "null"], "minimum": 0, "maximum": 1e12}))
    }

    fn required_names(&self, names: &[&str]) -> Value {
        self.or_placeholder(json!({"enum": names}))
    }

    fn names(&self, names: &[&str]) -> Value {
        let mut values: Vec<Value> = names.iter().map(|name| json!(name)).collect();
        values.push(Value::Null);
        self.or_placeholder(json!({"enum": values}))
    }

    fn names_or_empty(&self, names: &[&str]) -> Value {
        let with_empty: Vec<&str> = names.iter().copied().chain([""]).collect();
        self.names(&with_empty)
    }
}

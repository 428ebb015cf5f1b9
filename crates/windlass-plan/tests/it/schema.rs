//! The JSON Schema accepts what the loader accepts, and refuses what it refuses.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;
use windlass_plan::json_schema;

use crate::support::{SMALLEST, examples, fixtures, load_text};

#[test]
fn examples_and_fixtures_are_valid_exactly_if_they_load() {
    let schema = jsonschema::validator_for(&json_schema()).expect("a valid schema");
    for path in examples().into_iter().chain(fixtures()) {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let value = to_json(&text);
        let faults: Vec<String> = schema.iter_errors(&value).map(|e| e.to_string()).collect();
        assert_eq!(
            faults.is_empty(),
            load_text(&text).is_ok(),
            "{}: {faults:?}",
            path.display()
        );
    }
}

#[test]
fn faults_of_form_are_refused() {
    let schema = jsonschema::validator_for(&json_schema()).expect("a valid schema");
    assert!(schema.is_valid(&to_json(SMALLEST)));
    for (from, to) in [
        ("schema_version: 1", "schema_version: 3"),
        ("edges: []", "edges: {}"),
        ("edges: []", "extra: []"),
        ("name: smallest", "nam: smallest"),
        ("name: smallest", "name: 5"),
        ("event_loop", "manual_step"),
        ("event_loop", "event_loop, hz: -1"),
        ("event_loop", "event_loop, period_ms: fast"),
        ("event_loop", "event_loop, max_threads: 1.5"),
        ("main:", "\"a b\":"),
        ("components: []", "components: [{id: a, type: t}]"),
        (
            "components: []",
            "components: [{id: a, type: t, execution: {lane: m, priority: urgent}}]",
        ),
        (
            "components: []",
            "components: [{id: a, type: t, execution: {lane: m}, trigger_policy: {input: a, inputs: [b]}}]",
        ),
        (
            "components: []",
            "components: [{id: \"{{a}}\", type: t, execution: {lane: m, \"{{x}}\": 1}}]",
        ),
        (
            "components: []",
            "components: [{id: a, type: t, execution: {lane: main, timeout_ms: 5}}]",
        ),
        (
            "edges: []",
            "edges: [{id: e, from: a, to: b.c, kind: delay}]",
        ),
        (
            "edges: []",
            "edges: [{id: e, from: a.b, to: b.c, kind: soon}]",
        ),
    ] {
        let text = SMALLEST.replace(from, to);
        assert!(load_text(&text).is_err(), "the loader accepts {to}");
        assert!(!schema.is_valid(&to_json(&text)), "the schema accepts {to}");
    }
}

#[test]
fn what_came_with_version_2_is_there_in_version_2_only() {
    let schema = jsonschema::validator_for(&json_schema()).expect("a valid schema");
    let component = "{id: a, type: t, execution: {lane: main, timeout_ms: 5}}";
    for text in [
        SMALLEST.replace("components: []", &format!("components: [{component}]")),
        format!("{SMALLEST}subgraphs: [{{id: s, components: [{component}]}}]\n"),
        format!(
            "{SMALLEST}templates: [{{id: t, components: [{component}]}}]\ntemplate_instances: [{{id: i, template: t}}]\n"
        ),
    ] {
        assert!(load_text(&text).is_err(), "{text}");
        assert!(!schema.is_valid(&to_json(&text)), "{text}");
        let text = text.replace("schema_version: 1", "schema_version: 2");
        assert!(load_text(&text).is_ok(), "{text}");
        assert!(schema.is_valid(&to_json(&text)), "{text}");
    }
}

/// A value as the core schema of YAML reads it; enough for files without anchors.
fn to_json(text: &str) -> Value {
    let mut open: Vec<(Value, Option<String>)> = vec![(Value::Array(Vec::new()), None)];
    for event in Parser::new_from_str(text) {
        let done = match event.expect("valid YAML").0 {
            Event::Scalar(text, ScalarStyle::Plain, ..) => plain(&text),
            Event::Scalar(text, ..) => Value::String(text.into_owned()),
            Event::SequenceStart(..) => {
                open.push((Value::Array(Vec::new()), None));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((Value::Object(serde_json::Map::new()), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().expect("an open value").0,
            _ => continue,
        };
        match open.last_mut().expect("an open value") {
            (Value::Array(items), _) => items.push(done),
            (Value::Object(map), key) => match key.take() {
                Some(key) => {
                    map.insert(key, done);
                }
                None => {
                    *key = Some(
                        done.as_str()
                            .map_or_else(|| done.to_string(), str::to_owned),
                    )
                }
            },
            _ => unreachable!("only lists and maps are open"),
        }
    }
    open[0].0[0].take()
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => {
                serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number)
            }
            _ => Value::String(text.to_owned()),
        },
    }
}

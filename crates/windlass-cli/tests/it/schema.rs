//! `windlass schema`.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::Value;

use crate::support::{broken, example, example_text, examples, windlass, windlass_with};

#[test]
fn the_schema_accepts_the_examples() {
    let dumped = windlass(&["schema", "dump"]).fine().json();
    let schema = jsonschema::validator_for(&dumped).expect("a valid schema");
    for name in examples() {
        let value = to_json(&example_text(&name));
        let faults: Vec<String> = schema.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {faults:?}");
    }
    let odd = example_text("hello").replace("event_loop", "elsewhere");
    assert!(!schema.is_valid(&to_json(&odd)));
}

#[test]
fn every_file_is_checked_for_its_form_alone() {
    let files: Vec<String> = examples().iter().map(|name| example(name)).collect();
    let mut arguments = vec!["schema", "check"];
    arguments.extend(files.iter().map(String::as_str));
    let fine = windlass(&arguments).fine();
    assert_eq!(fine.out.lines().count(), files.len());

    let (form, meaning) = (
        broken("graph_validation_error_load"),
        broken("unknown_port"),
    );
    windlass(&["schema", "check", &meaning]).fine();
    arguments.splice(2..2, [form.as_str(), "no/such.yaml"]);
    let ended = windlass(&arguments).refused();
    assert_eq!(ended.err.matches("help: ").count(), 4, "{}", ended.err);
    assert!(
        ended.err.contains("unexpected field components[0].colour"),
        "{}",
        ended.err
    );
    assert!(
        ended.err.contains("cannot read no/such.yaml"),
        "{}",
        ended.err
    );
    assert_eq!(
        ended.out.matches("ok: true").count(),
        files.len(),
        "the others are checked, too"
    );
}

#[test]
fn what_was_checked_is_a_document_too() {
    let (fine, broken) = (example("hello"), broken("graph_validation_error_load"));
    let arguments = [
        "schema",
        "check",
        "--format",
        "json",
        &fine,
        &broken,
        "no/such.yaml",
    ];
    let ended = windlass(&arguments).refused();
    let checked = ended.json();
    assert_eq!(checked["ok"], false);
    let ok: Vec<&Value> = checked["files"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|file| &file["ok"])
        .collect();
    assert_eq!(ok, [true, false, false]);
    assert_eq!(checked["files"][0]["file"], fine.as_str());
    let finding = &checked["files"][1]["diagnostics"][0];
    assert!(finding["line"].as_u64().is_some(), "{finding}");
    let unread = checked["files"][2]["errors"][0].as_str().expect("a reason");
    assert!(unread.contains("cannot read no/such.yaml"), "{unread}");
    assert_eq!(windlass(&arguments[..5]).fine().json()["ok"], true);
}

#[test]
fn a_file_can_come_from_standard_input() {
    let text = example_text("hello");
    let ended = windlass_with(&["schema", "check", "-"], text.as_bytes()).fine();
    assert!(ended.out.contains("<stdin>"), "{}", ended.out);
}

/// A value as the core schema of YAML reads it; enough for files without anchors.
fn to_json(text: &str) -> Value {
    let mut open: Vec<(Value, Option<String>)> = vec![(Value::Array(Vec::new()), None)];
    for event in Parser::new_from_str(text) {
        let done = match event.expect("valid YAML").0 {
            Event::Scalar(text, ScalarStyle::Plain, ..) => {
                serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned()))
            }
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
                Some(key) => drop(map.insert(key, done)),
                None => *key = Some(done.as_str().expect("a name").to_owned()),
            },
            _ => unreachable!("only lists and maps are open"),
        }
    }
    open[0].0[0].take()
}

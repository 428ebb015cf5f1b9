//! Output that programs read stays as it is.

use serde_json::Value;

use crate::support::{compare, example, windlass};

/// The graphs, and how many epochs show all there is to see.
const GRAPHS: &[(&str, &str)] = &[("hello", "1"), ("control_loop", "2")];

#[test]
fn plans() {
    for (name, _) in GRAPHS {
        let plan = windlass(&["graph", "plan", &example(name), "--format", "json"]).fine();
        compare(&format!("{name}.plan.lines"), &by_line(&plan.json()));
        let drawn = windlass(&["graph", "render", &example(name), "--format", "json"]).fine();
        assert_eq!(drawn.out, plan.out);
    }
}

#[test]
fn pictures() {
    let kinds = [
        ("mermaid", "mmd"),
        ("text", "txt"),
        ("dot", "dot"),
        ("svg", "svg"),
    ];
    for (name, _) in GRAPHS {
        for (kind, ending) in kinds {
            let drawn = windlass(&["graph", "render", &example(name), "--format", kind]).fine();
            compare(&format!("{name}.render.{ending}"), &drawn.out);
        }
    }
}

#[test]
fn metrics() {
    for (name, steps) in GRAPHS {
        let file = example(name);
        let arguments = [
            "graph", "metrics", &file, "--steps", steps, "--format", "json",
        ];
        let mut document = windlass(&arguments).fine().json();
        for sample in document["samples"].as_array_mut().expect("samples") {
            let metric = sample["name"].as_str().expect("a name");
            if ["duration", "lateness", "jitter"]
                .iter()
                .any(|part| metric.contains(part))
            {
                sample["value"] = 0.into();
            }
        }
        compare(&format!("{name}.metrics.lines"), &by_line(&document));
    }
}

#[test]
fn traces() {
    for (name, steps) in GRAPHS {
        let file = example(name);
        let arguments = [
            "graph", "trace", &file, "--steps", steps, "--format", "json",
        ];
        let mut document = windlass(&arguments).fine().json();
        for event in document["events"].as_array_mut().expect("events") {
            event["start_offset_ns"] = 0.into();
            event["duration_ns"] = 0.into();
        }
        compare(&format!("{name}.trace.lines"), &by_line(&document));
    }
}

/// A graph file with the former names of built-in types is drawn as it is written, and otherwise
/// the same as one with the present names.
#[test]
fn former_names_of_types_still_load_run_and_render() {
    let former = "crates/windlass-cli/tests/fixtures/former_names.yaml";
    let present = example("control_loop");
    let renamed = |text: &str| text.replace("topoexec.example.", "windlass.example.");
    windlass(&["graph", "validate", former, "--strict-diagnostics"]).fine();
    for command in ["plan", "render"] {
        for kind in ["json", "text", "mermaid", "dot", "svg"] {
            if command == "plan" && kind != "json" {
                continue;
            }
            let drawn = windlass(&["graph", command, former, "--format", kind]).fine();
            assert!(
                drawn.out.contains("topoexec.example.Sensor"),
                "{}",
                drawn.out
            );
            let expected = windlass(&["graph", command, &present, "--format", kind]).fine();
            assert_eq!(renamed(&drawn.out), expected.out, "{command} {kind}");
        }
    }
    let trace = |file: &str| {
        let arguments = ["graph", "trace", file, "--steps", "2", "--format", "json"];
        let mut document = windlass(&arguments).fine().json();
        for event in document["events"].as_array_mut().expect("events") {
            event["start_offset_ns"] = 0.into();
            event["duration_ns"] = 0.into();
        }
        document
    };
    assert_eq!(trace(former), trace(&present));
}

/// A document with each field, and each item of a list, on a line of its own: short, and easy to
/// compare.
fn by_line(document: &Value) -> String {
    let mut text = String::new();
    for (key, value) in document.as_object().expect("a map") {
        match value.as_array().filter(|items| !items.is_empty()) {
            Some(items) => {
                text.push_str(&format!("{key}:\n"));
                for item in items {
                    text.push_str(&format!("  {item}\n"));
                }
            }
            None => text.push_str(&format!("{key}: {value}\n")),
        }
    }
    text
}

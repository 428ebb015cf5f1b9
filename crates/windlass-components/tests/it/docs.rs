//! docs/components.md says what there is, and the examples do what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use windlass_components::register;
use windlass_graph::check::{Level, check};
use windlass_graph::component::{ConfigField, ConfigKind, Descriptor, Registry};
use windlass_graph::expression::{Names, function_names};
use windlass_graph::{LoadOptions, Prepared, RunOptions, RunResult, StopReason, load};
use windlass_runtime::Runtime;

use crate::stage::{Scratch, until_idle};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/components.md")).expect("the page is there")
}

fn registry() -> Registry {
    let mut registry = Registry::built_in();
    register(&mut registry);
    registry
}

/// The types of this crate.
fn ours() -> BTreeMap<String, Descriptor> {
    let mut registry = Registry::new();
    register(&mut registry);
    registry.descriptors()
}

/// The sections about types: name and text.
fn sections(page: &str) -> BTreeMap<&str, &str> {
    let parts = page.split("\n### `").skip(1);
    parts
        .filter_map(|part| part.split_once('`'))
        .map(|(name, text)| (name, text.split("\n## ").next().unwrap_or(text)))
        .collect()
}

fn kind_word(kind: ConfigKind) -> &'static str {
    match kind {
        ConfigKind::Bool => "boolean",
        ConfigKind::Integer => "whole number",
        ConfigKind::Number => "number",
        ConfigKind::String | ConfigKind::Expression(_) => "text",
        ConfigKind::List => "list",
        ConfigKind::Map => "map",
        ConfigKind::Any => "any",
    }
}

/// How the row of a field begins.
fn row_of(field: &ConfigField) -> String {
    let kind = kind_word(field.kind);
    match field.required {
        true => format!("| **`{}`** | {kind} | ", field.name),
        false => format!("| `{}` | {kind} | ", field.name),
    }
}

#[test]
fn every_type_has_a_section_and_every_section_a_type() {
    let (page, ours) = (page(), ours());
    let there: BTreeSet<&str> = sections(&page).into_keys().collect();
    let types: BTreeSet<&str> = ours.keys().map(String::as_str).collect();
    assert_eq!(there, types);
    assert_eq!(types.len(), 22);
}

#[test]
fn every_table_has_exactly_the_fields_of_its_type() {
    let page = page();
    let sections = sections(&page);
    for (name, descriptor) in ours() {
        let rows: Vec<&str> = sections[name.as_str()]
            .lines()
            .filter(|line| line.starts_with("| `") || line.starts_with("| **`"))
            .collect();
        for field in &descriptor.config {
            let begin = row_of(field);
            let row = rows.iter().find(|row| row.starts_with(&begin));
            let row = row.unwrap_or_else(|| panic!("{name} lacks the row {begin}"));
            for word in &field.one_of {
                assert!(
                    row.contains(&format!("`{word}`")),
                    "{name}: {word} is not in {row}"
                );
            }
        }
        assert_eq!(
            rows.len(),
            descriptor.config.len(),
            "{name} has rows for nothing"
        );
    }
}

#[test]
fn every_section_names_the_ports_of_its_type() {
    let page = page();
    let sections = sections(&page);
    for (name, descriptor) in ours() {
        if descriptor.declared_ports {
            continue;
        }
        let names = |ports: &[windlass_graph::component::Port], open: bool| match ports {
            [] if open => "any".to_owned(),
            [] => "none".to_owned(),
            ports => {
                let names: Vec<String> = ports.iter().map(|p| format!("`{}`", p.name)).collect();
                names.join(", ")
            }
        };
        let inputs = names(&descriptor.inputs, descriptor.open_ports);
        let outputs = names(&descriptor.outputs, false);
        let ports = format!("Ports: {inputs} -> {outputs}.");
        // The page breaks its lines wherever they are full.
        let section: Vec<&str> = sections[name.as_str()].split_whitespace().collect();
        assert!(section.join(" ").contains(&ports), "{name} lacks {ports}");
    }
}

#[test]
fn every_function_and_name_is_explained() {
    let page = page();
    for function in function_names() {
        assert!(page.contains(&format!("`{function}(")), "{function}");
    }
    for name in Names::Window.iter().chain(Names::Event.iter()) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

/// The examples with types of this crate.
fn examples() -> Vec<(String, String)> {
    let folder = std::fs::read_dir(root().join("examples/graphs")).expect("the folder is there");
    let paths = folder.map(|entry| entry.expect("a file").path());
    let yaml = paths.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    let mut examples: Vec<(String, String)> = yaml
        .map(|path| {
            let name = path.file_stem().expect("a name").display().to_string();
            (name, std::fs::read_to_string(path).expect("readable"))
        })
        .filter(|(_, text)| {
            let mut names = text.split("type: windlass.").skip(1);
            let built_in = ["boundary.", "transform.", "example."];
            names.any(|name| !built_in.iter().any(|folder| name.starts_with(folder)))
        })
        .collect();
    examples.sort();
    examples
}

#[test]
fn the_examples_and_the_graph_on_the_page_are_in_order() {
    let examples = examples();
    let names: Vec<&str> = examples.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["csv_pipeline", "fusion", "python"]);
    let page = page();
    let graphs = page.split("```yaml\n").skip(1);
    let graphs = graphs.filter_map(|block| block.split("```").next());
    let texts = examples.iter().map(|(_, text)| text.as_str()).chain(graphs);
    for text in texts {
        let loaded = load(text, &LoadOptions::default());
        let loaded = loaded.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let found = check(&loaded.graph, &registry(), Level::Registry);
        assert!(found.is_empty(), "{found:#?}\n{text}");
    }
}

/// Runs an example, which writes to a file of this test.
fn run(name: &str, output: &str, options: RunOptions) -> (RunResult, String) {
    let (_, text) = examples()
        .into_iter()
        .find(|(there, _)| there == name)
        .expect("it is there");
    let file = Scratch::missing();
    assert!(text.contains(output), "{text}");
    let text = text
        .replace(
            "examples/graphs/",
            &format!("{}/examples/graphs/", root().display()),
        )
        .replace(output, &file.path());
    let loaded = load(&text, &LoadOptions::default()).unwrap_or_else(|errors| panic!("{errors}"));
    let prepared = Prepared::new(loaded.graph, registry()).expect("it compiles");
    let result = Runtime::new().unwrap().block_on(prepared.run(options));
    assert!(result.is_ok(), "{:?}", result.errors);
    (result, file.text())
}

#[test]
fn the_csv_pipeline_keeps_and_converts_what_is_warm() {
    let (result, written) = run("csv_pipeline", "/tmp/windlass-warm.csv", until_idle());
    assert_eq!(result.stop_reason, StopReason::Idle);
    let expected = "at,station,fahrenheit\n10,SOUTH,75.7\n40,NORTH,89.2\n50,SOUTH,92.3\n";
    assert_eq!(written, expected);
}

#[test]
fn the_fusion_pairs_what_is_of_the_same_time() {
    let (_, written) = run(
        "fusion",
        "/tmp/windlass-fusion.jsonl",
        RunOptions::steps(12),
    );
    let times: Vec<f64> = written
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(
                (9.0..12.5).contains(&value["mean"].as_f64().unwrap()),
                "{line}"
            );
            value["at_ms"].as_f64().unwrap()
        })
        .collect();
    assert_eq!(times, [40.0, 60.0, 80.0]);
}

#[test]
fn a_component_in_python_smooths() {
    if std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("there is no python3");
        return;
    }
    let (result, written) = run("python", "/tmp/windlass-smooth.jsonl", until_idle());
    assert_eq!(result.stop_reason, StopReason::Idle);
    let smooth: Vec<f64> = written
        .lines()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            value["smooth"].as_f64().unwrap()
        })
        .collect();
    assert_eq!(smooth, [10.0, 10.2, 10.55, 10.825, 11.212]);
}

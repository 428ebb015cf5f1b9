//! docs/graph.md says what there is: every name, and examples that are in order.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use serde_json::Value;
use windlass_graph::check::{Level, check};
use windlass_graph::component::{Registry, built_in};
use windlass_graph::diagnostic::{Code, Severity};
use windlass_graph::lint::Rule;
use windlass_graph::model::{
    BoundaryRole, ClockDomain, Condition, Convergence, CopyPolicy, EdgeKind, EventSourceKind,
    GraphKind, LaneKind, LaneOverflow, LoopKind, Mode, OnError, Overflow, OverrunPolicy, Owner,
    PartialSuccess, Priority, Readers, TriggerKind,
};
use windlass_graph::render::Picture;
use windlass_graph::run::{ErrorCode, HealthKind, TraceName};
use windlass_graph::{Prepared, RunOptions, StopReason, json_schema};
use windlass_runtime::Runtime;

use crate::support::{examples, load_text};

/// The page: its prose, and its blocks of code with their language.
struct Page {
    prose: String,
    blocks: Vec<(String, String)>,
}

fn page() -> Page {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/graph.md");
    let text = std::fs::read_to_string(path).expect("the page is there");
    let mut page = Page {
        prose: String::new(),
        blocks: Vec::new(),
    };
    let mut inside = false;
    for line in text.lines() {
        match (inside, line.strip_prefix("```")) {
            (false, Some(language)) => {
                page.blocks.push((language.to_owned(), String::new()));
                inside = true;
            }
            (true, Some(_)) => inside = false,
            (true, None) => {
                let block = page.blocks.last_mut().expect("one was begun");
                block.1.push_str(line);
                block.1.push('\n');
            }
            (false, None) => {
                page.prose.push_str(line);
                page.prose.push('\n');
            }
        }
    }
    assert!(!inside, "the last block does not end");
    page
}

/// The words of what is written `as code` in the prose.
fn code_words(prose: &str) -> HashSet<&str> {
    let spans = prose
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    spans
        .flat_map(|span| span.split(move |c| !is_part(c)))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Fails with all names that the page lacks.
fn explains<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) {
    let page = page();
    let words = code_words(&page.prose);
    let missing: Vec<&str> = names
        .into_iter()
        .filter(|name| !words.contains(name))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/graph.md lacks these {what}: {missing:?}"
    );
}

#[test]
fn every_code_is_explained_with_its_severity() {
    let prose = page().prose;
    for code in Code::ALL {
        let row = format!("| `{}` | {} |", code.name(), code.severity().name());
        assert!(prose.contains(&row), "docs/graph.md lacks the row {row}");
        explains("categories", [code.category().name()]);
    }
}

#[test]
fn every_name_of_the_model_is_explained() {
    let names = [
        BoundaryRole::NAMES,
        ClockDomain::NAMES,
        Condition::NAMES,
        Convergence::NAMES,
        CopyPolicy::NAMES,
        EdgeKind::NAMES,
        EventSourceKind::NAMES,
        GraphKind::NAMES,
        LaneKind::NAMES,
        LaneOverflow::NAMES,
        LoopKind::NAMES,
        Mode::NAMES,
        OnError::NAMES,
        Overflow::NAMES,
        OverrunPolicy::NAMES,
        Owner::NAMES,
        PartialSuccess::NAMES,
        Priority::NAMES,
        Readers::NAMES,
        TriggerKind::NAMES,
    ];
    explains("names", names.into_iter().flatten().copied());
}

#[test]
fn every_name_of_a_run_is_explained() {
    let names = [
        ErrorCode::NAMES,
        HealthKind::NAMES,
        Picture::NAMES,
        Rule::NAMES,
        StopReason::NAMES,
        TraceName::NAMES,
    ];
    explains("names", names.into_iter().flatten().copied());
}

/// No example has a limit.
const LIMITED: &str = "
schema_version: 2
graph: {name: limited, kind: internal_test}
lanes: {main: {type: event_loop}}
components: [{id: a, type: windlass.example.Sensor, execution: {lane: main, timeout_ms: 20}}]
edges: []
";

#[test]
fn every_metric_that_a_run_emits_is_explained() {
    let mut emitted = BTreeSet::new();
    let texts = examples().into_iter();
    let texts = texts.map(|path| std::fs::read_to_string(path).expect("a readable file"));
    for text in texts.chain([LIMITED.to_owned()]) {
        let loaded = load_text(&text).expect("an example loads");
        let prepared = Prepared::new(loaded.graph, Registry::built_in()).expect("it compiles");
        let result = Runtime::simulated(1).block_on(prepared.run(RunOptions::steps(1)));
        let names = result.metrics.samples.iter().map(|sample| sample.name);
        emitted.extend(names);
    }
    // Only graphs with such edges and loops have these.
    assert!(emitted.contains("runtime.async.accepted_count"));
    assert!(emitted.contains("runtime.loop.iterations"));
    assert!(emitted.contains("runtime.component.timeout_count"));
    let prose = page().prose;
    let missing: Vec<&str> = emitted
        .into_iter()
        .filter(|name| !prose.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/graph.md lacks {missing:?}");
}

#[test]
fn every_field_of_the_schema_is_explained() {
    let schema = json_schema();
    let mut fields = BTreeSet::new();
    collect_fields(&schema, &mut fields);
    assert!(fields.contains("watermark_lateness_ms"));
    explains("fields", fields.iter().map(String::as_str));
}

/// The names of all `properties`, however deep.
fn collect_fields(schema: &Value, fields: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get("properties") {
                fields.extend(properties.keys().cloned());
            }
            map.values().for_each(|value| collect_fields(value, fields));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_fields(item, fields)),
        _ => {}
    }
}

#[test]
fn every_built_in_type_is_listed() {
    let prose = page().prose;
    for name in built_in::descriptors().keys() {
        assert!(prose.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn every_graph_on_the_page_is_in_order() {
    let catalog = built_in::descriptors();
    let mut graphs = 0;
    for (language, text) in page().blocks {
        if language != "yaml" || !text.starts_with("schema_version") {
            continue;
        }
        graphs += 1;
        let loaded = load_text(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let found = check(&loaded.graph, &catalog, Level::Registry);
        let errors: Vec<_> = found
            .iter()
            .filter(|finding| finding.severity() == Severity::Error)
            .collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
    }
    assert!(graphs >= 3, "the page has {graphs} graphs");
}

#[test]
fn the_first_graph_does_what_the_page_says() {
    let page = page();
    let (_, graph) = &page.blocks[0];
    let (_, output) = &page.blocks[1];
    let loaded = load_text(graph).expect("it loads");
    let prepared = Prepared::new(loaded.graph, Registry::built_in()).expect("it compiles");
    let result = Runtime::simulated(1).block_on(prepared.run(RunOptions::steps(2).traced()));
    let sum = |name: &str| result.metrics.sum(name);
    for line in [
        format!("ticks: {}", result.ticks),
        format!("stop_reason: {}", result.stop_reason),
        format!("order: {}", result.order.join(", ")),
        format!(
            "channel_publish_count: {}",
            sum("runtime.channel.publish_count")
        ),
        format!(
            "channel_overwrite_count: {}",
            sum("runtime.channel.overwrite_count")
        ),
        format!("channel_lost_count: {}", sum("runtime.channel.lost_count")),
        format!("trace_event_count: {}", sum("runtime.trace.event_count")),
    ] {
        assert!(
            output.lines().any(|there| there == line),
            "{line}\n{output}"
        );
    }
}

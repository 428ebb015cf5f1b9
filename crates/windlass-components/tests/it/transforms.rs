//! Map, filter, window, throttle, merge, log.

use windlass_graph::RunOptions;
use windlass_graph::model::Config;
use windlass_graph::run::{ConfigTransaction, Snapshot};
use windlass_runtime::Runtime;

use crate::stage::{Stage, contains};

#[test]
fn a_map_publishes_what_its_expression_says_at_the_same_time() {
    let epochs = "[[1, {value: 2, at: 5}], ['x', {k: 3}]]";
    let config = "expr: '{v: value, p: port, t: event_ms}'";
    let stage = Stage::through("windlass.map", config, &["out"], epochs);
    assert_eq!(
        stage.seen(),
        [
            r#"out={"p":"in","t":null,"v":1}"#,
            r#"out={"p":"in","t":5.0,"v":2}@5"#,
            r#"out={"p":"in","t":null,"v":"x"}"#,
            r#"out={"p":"in","t":null,"v":{"k":3}}"#,
        ]
    );
    let stage = Stage::through("windlass.map", "expr: 'value * 2'", &["out"], "[[1, 1.5]]");
    assert_eq!(stage.seen(), ["out=2", "out=3.0"]);
}

#[test]
fn a_wrong_expression_is_shown_with_a_caret() {
    for kind in ["map", "filter"] {
        let name = format!("windlass.{kind}");
        let told = Stage::through(&name, "expr: 'value.a +'", &["out"], "[]").fails();
        let caret = "  value.a +\n           ^";
        contains(&told, &["config.expr is no expression", "column 10", caret]);
        let told = Stage::through(&name, "", &["out"], "[]").fails();
        contains(&told, &["config.expr is missing"]);
    }
    let stage = Stage::through("windlass.map", "expr: 'value + 1'", &["out"], "[['x']]");
    let caret = "\n  value + 1\n        ^";
    contains(&stage.fails(), &["cannot be computed", "got a text", caret]);
}

#[test]
fn a_map_works_with_a_new_expression_and_refuses_a_wrong_one() {
    let stage = Stage::through("windlass.map", "expr: value", &["out"], "[[1], [2]]");
    for (expr, fine) in [("value * 10", true), ("value *", false)] {
        let run = stage.prepared().begin(RunOptions::steps(2));
        let mut config = Config::new();
        config.insert("expr".to_owned(), expr.into());
        let change = ConfigTransaction::new().set("it", config);
        run.control().reconfigure(change).unwrap();
        let result = Runtime::simulated(1).block_on(run.run());
        assert_eq!(result.is_ok(), fine, "{:?}", result.errors);
        let seen = stage.log.take();
        assert_eq!(seen.first().map(String::as_str), fine.then_some("out=10"));
    }
}

#[test]
fn a_filter_parts_messages() {
    let outputs = ["out", "else"];
    let stage = Stage::through(
        "windlass.filter",
        "expr: 'value > 2'",
        &outputs,
        "[[1, 2, 3, 4]]",
    );
    let mut seen = stage.seen();
    seen.sort();
    assert_eq!(seen, ["else=1", "else=2", "out=3", "out=4"]);
    let stage = Stage::through("windlass.filter", "expr: 'value'", &["out"], "[[1]]");
    contains(&stage.fails(), &["value gives 1", "true or false"]);
}

#[test]
fn a_window_of_messages_tumbles_slides_and_leaves_gaps() {
    let all = "[[1, 2, 3], [4, 5, 6, 7]]";
    for (config, expected) in [
        ("size: 3, expr: 'sum(values)'", vec!["out=6", "out=15"]),
        (
            "size: 3, step: 1, expr: 'mean(values)'",
            vec!["out=2.0", "out=3.0", "out=4.0", "out=5.0", "out=6.0"],
        ),
        (
            "size: 2, step: 3, expr: values",
            vec!["out=[1,2]", "out=[4,5]"],
        ),
        (
            "size: 2, expr: '[first(values), last(values), count(values), value]'",
            vec!["out=[1,2,2,2]", "out=[3,4,2,4]", "out=[5,6,2,6]"],
        ),
        (
            "size: 1, expr: 'max(values) - min(values) + stddev(values)'",
            vec!["out=0.0"; 7],
        ),
    ] {
        let stage = Stage::through("windlass.window", config, &["out"], all);
        assert_eq!(stage.seen(), expected, "{config}");
    }
}

#[test]
fn a_window_of_time_holds_the_messages_of_its_span() {
    let at = |times: &[i64]| {
        let one = |time: &i64| format!("{{value: {time}, at: {time}}}");
        let all: Vec<String> = times.iter().map(one).collect();
        format!("[[{}]]", all.join(", "))
    };
    for (config, times, expected) in [
        (
            "span_ms: 10, expr: values",
            &[0, 4, 9, 10, 25, 40][..],
            vec!["out=[0,4,9]@10", "out=[10]@20", "out=[25]@30"],
        ),
        (
            "span_ms: 10, step: 5, expr: values",
            &[0, 7, 12, 21],
            vec!["out=[0,7]@10", "out=[7,12]@15", "out=[12]@20"],
        ),
        (
            "span_ms: 5, step: 10, expr: values",
            &[0, 4, 7, 11, 20],
            vec!["out=[0,4]@5", "out=[11]@15"],
        ),
        // What comes too late for its own window is not lost.
        (
            "span_ms: 10, expr: values",
            &[0, 11, 3, 20],
            vec!["out=[0]@10", "out=[11,3]@20"],
        ),
        // Nothing is published for windows in which there is nothing.
        (
            "span_ms: 1, expr: values",
            &[0, 1_000_000_000, 1_000_000_001],
            vec!["out=[0]@1", "out=[1000000000]@1000000001"],
        ),
    ] {
        let stage = Stage::through("windlass.window", config, &["out"], &at(times));
        assert_eq!(stage.seen(), expected, "{config} {times:?}");
    }
}

#[test]
fn a_window_is_bounded_and_says_so() {
    let config = "span_ms: 1000, max_values: 2, expr: values";
    let stage = Stage::through("windlass.window", config, &["out"], "[[1, 2, 3]]");
    contains(&stage.fails(), &["holds 2 messages", "config.max_values"]);
    for (config, what) in [
        (
            "expr: values",
            "either config.size (messages) or config.span_ms",
        ),
        ("size: 2, span_ms: 2, expr: values", "either config.size"),
        (
            "size: 0, expr: values",
            "config.size has to be a whole number from 1",
        ),
        (
            "size: 10, max_values: 5, expr: values",
            "more than config.max_values",
        ),
        (
            "span_ms: 1000000000, step: 1, expr: values",
            "config.step is too small",
        ),
        (
            "size: 2, expr: 'mean(values'",
            "config.expr is no expression",
        ),
    ] {
        let stage = Stage::through("windlass.window", config, &["out"], "[]");
        contains(&stage.fails(), &[what]);
    }
}

#[test]
fn a_window_goes_on_where_a_snapshot_was_taken() {
    let config = "size: 3, expr: values";
    let stage = Stage::through("windlass.window", config, &["out"], "[[1, 2]]");
    let run = |restore: Option<Snapshot>| {
        let options = RunOptions {
            snapshot: true,
            restore,
            ..RunOptions::steps(1)
        };
        Runtime::simulated(1).block_on(stage.prepared().run(options))
    };
    let first = run(None);
    assert!(stage.log.take().is_empty());
    run(first.snapshot);
    assert_eq!(stage.log.take(), ["out=[1,2,1]"]);
}

#[test]
fn a_throttle_drops_what_comes_too_early_on_the_clock_of_its_lane() {
    let epochs = "[[0], [1], [2], [3], [4], [5]]";
    let outputs = ["out", "dropped"];
    let stage = Stage::through("windlass.throttle", "min_interval_ms: 20", &outputs, epochs)
        .with("type: event_loop", "type: fixed_rate, period_ms: 10");
    let expected = [
        "out=0",
        "dropped=1",
        "out=2",
        "dropped=3",
        "out=4",
        "dropped=5",
    ];
    assert_eq!(stage.seen(), expected);
    let stage = Stage::through(
        "windlass.throttle",
        "min_interval_ms: 0",
        &["out"],
        "[[1, 2]]",
    );
    assert_eq!(stage.seen(), ["out=1", "out=2"]);
    for (config, what) in [
        ("", "min_interval_ms is missing"),
        ("min_interval_ms: -1", "whole number from 0"),
    ] {
        let stage = Stage::through("windlass.throttle", config, &["out"], "[]");
        contains(&stage.fails(), &[what]);
    }
}

const MERGE: &str = "
components:
  - {id: a, type: test.Source, config: {epochs: [[1, {value: 2, at: 7}], [3]]}, execution: {lane: main}}
  - {id: b, type: test.Source, config: {epochs: [[10], [20, 30]]}, execution: {lane: main}}
  - {id: it, type: windlass.merge, trigger_policy: {type: any_input, inputs: [x, y]}, execution: {lane: main}}
  - {id: out, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: ax, from: a.out, to: it.y, kind: immediate, QUEUE}
  - {id: by, from: b.out, to: it.x, kind: immediate, QUEUE}
  - {id: e, from: it.out, to: out.in, kind: immediate, QUEUE}
";

#[test]
fn a_merge_publishes_everything_that_comes() {
    let mut seen = Stage::new(MERGE).seen();
    seen.sort();
    assert_eq!(seen, ["in=1", "in=10", "in=20", "in=2@7", "in=3", "in=30"]);
}

#[test]
fn a_merge_keeps_the_order_of_what_comes_together() {
    // All in one invocation: by when it was published, not by the names of the ports.
    let stage = Stage::new(MERGE).with(
        "type: any_input, inputs: [x, y]",
        "type: batch, batch_size: 3, inputs: [x, y]",
    );
    let seen = stage.seen();
    assert_eq!(seen.len(), 6);
    let place = |value: &str| seen.iter().position(|line| line.starts_with(value));
    assert!(place("in=1") < place("in=10"), "{seen:?}");
    assert!(place("in=3") < place("in=20"), "{seen:?}");
    let stage = Stage::new(MERGE).with("from: it.out", "from: it.other");
    contains(&stage.fails(), &["there is no output other"]);
}

#[test]
fn a_log_forwards_what_it_shows() {
    let config = "level: warn, prefix: 'seen: '";
    let epochs = "[[1, 'x'], [{value: 2, at: 3}]]";
    let stage = Stage::through("windlass.log", config, &["out"], epochs);
    assert_eq!(stage.seen(), ["out=1", r#"out="x""#, "out=2@3"]);
    let stage = Stage::through("windlass.log", "to: tracing", &["out"], "[[1]]");
    assert_eq!(stage.seen(), ["out=1"]);
    for (config, what) in [
        (
            "level: loud",
            "config.level is \"loud\"; allowed are info, trace, debug, warn, error",
        ),
        (
            "to: nowhere",
            "config.to is \"nowhere\"; allowed are stderr, tracing",
        ),
        ("prefix: 5", "config.prefix has to be a text, and is 5"),
    ] {
        let stage = Stage::through("windlass.log", config, &["out"], "[]");
        contains(&stage.fails(), &[what]);
    }
}

#[test]
fn a_component_that_cannot_change_its_configuration_says_so() {
    let config = "size: 3, expr: values";
    let stage = Stage::through("windlass.window", config, &["out"], "[[1], [2]]");
    let run = stage.prepared().begin(RunOptions::steps(2));
    let change = ConfigTransaction::new().set("it", Config::new());
    run.control().reconfigure(change).unwrap();
    let result = Runtime::simulated(1).block_on(run.run());
    contains(
        &crate::stage::told(&result),
        &["cannot be changed while it runs"],
    );
}

/// Writes down events: `LEVEL field=value field=value`.
#[derive(Clone, Default)]
struct Listener(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl tracing::Subscriber for Listener {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "windlass::graph"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = event.metadata().level().to_string();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                line.push_str(&format!(" {field}={value:?}"));
            },
        );
        self.0.lock().unwrap().push(line);
    }
}

#[test]
fn a_log_tells_those_who_listen_to_tracing() {
    let listener = Listener::default();
    let config = "to: tracing, level: debug, prefix: 'seen: '";
    let stage = Stage::through("windlass.log", config, &["out"], "[[1, 'x'], [{k: 2}]]");
    tracing::subscriber::with_default(listener.clone(), || stage.seen());
    let mut told = listener.0.lock().unwrap().clone();
    told.retain(|line| line.contains("seen"));
    let expected =
        ["1", "x", r#"{"k":2}"#].map(|text| format!("DEBUG message=seen: {text} component=\"it\""));
    assert_eq!(told, expected);
}

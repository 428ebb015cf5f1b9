//! The form of a file: fields, types, names.

use std::time::Duration;

use windlass_plan::diagnostic::Code;
use windlass_plan::model::{EventSourceKind, LaneKind, Mode, Overflow, TriggerKind};

use crate::support::{SMALLEST, load_text, messages};

const COMPONENT: &str = "components:\n  - {id: a, type: t, execution: {lane: main}}\n";

/// A file with these lines instead of the empty list of components.
fn with_components(lines: &str) -> String {
    SMALLEST.replace("components: []\n", &format!("components:\n{lines}\n"))
}

fn with_lane(fields: &str) -> String {
    SMALLEST.replace(
        "{type: event_loop}",
        &format!("{{type: event_loop, {fields}}}"),
    )
}

fn with_policy(fields: &str) -> String {
    let edge =
        format!("edges:\n  - {{id: e, from: a.x, to: a.y, kind: delay, policy: {{{fields}}}}}\n");
    SMALLEST
        .replace("components: []\n", COMPONENT)
        .replace("edges: []\n", &edge)
}

fn with_loop(fields: &str) -> String {
    format!(
        "{SMALLEST}composite_loops:\n  - {{id: l, components: [a], loop_policy: {{{fields}}}}}\n"
    )
}

#[test]
fn faults_of_form_are_named() {
    let component = |fields: &str| {
        with_components(&format!(
            "  - {{id: a, type: t, execution: {{lane: main}}, {fields}}}"
        ))
    };
    let cases = [
        (
            SMALLEST.replace("schema_version: 1\n", ""),
            "missing field root.schema_version",
        ),
        (
            SMALLEST.replace("schema_version: 1", "schema_version: 3"),
            "schema_version 3 is not known; expected 1 to 2",
        ),
        (
            SMALLEST.replace("schema_version: 1", "schema_version: \"1\""),
            "expected a whole number, found the string \"1\"",
        ),
        (
            SMALLEST.replace("edges: []\n", ""),
            "missing field root.edges",
        ),
        (
            SMALLEST.replace("edges: []", "edges:"),
            "missing field root.edges",
        ),
        (
            SMALLEST.replace("edges: []", "edges: {}"),
            "expected a list, found a map",
        ),
        (
            format!("{SMALLEST}colour: red\n"),
            "unexpected field root.colour",
        ),
        (format!("{SMALLEST}<<: {{}}\n"), "unexpected field root.<<"),
        (
            SMALLEST.replace("name: smallest, ", ""),
            "missing field graph.name",
        ),
        (
            SMALLEST.replace("name: smallest", "name: 5"),
            "expected a string, found the number 5",
        ),
        (
            SMALLEST.replace(
                "name: smallest",
                "name: smallest, clock: {runtime_domain: device}",
            ),
            "unknown name \"device\"; allowed are: steady",
        ),
        (
            SMALLEST.replace("internal_test", "internal"),
            "unknown name \"internal\"; allowed are: runnable, internal_test",
        ),
        (
            SMALLEST.replace("{type: event_loop}", "{}"),
            "missing field lanes.main.type",
        ),
        (
            SMALLEST.replace("{type: event_loop}", "fast"),
            "expected a map, found the string \"fast\"",
        ),
        (
            SMALLEST.replace("main:", "\"my lane\":"),
            "the id \"my lane\" has white space or control characters in it",
        ),
        (
            SMALLEST.replace("main:", "\"\":"),
            "an id must not be empty",
        ),
        (
            with_lane("hz: .inf"),
            "the number is not finite, or too large",
        ),
        (
            with_lane("hz: .nan"),
            "the number is not finite, or too large",
        ),
        (with_lane("hz: -1"), "-1 is negative"),
        (
            with_lane("hz: fast"),
            "expected a number, found the string \"fast\"",
        ),
        (with_lane("period_ms: -0.5"), "-0.5 is negative"),
        (
            with_lane("period_ms: 1e13"),
            "10000000000000 ms is longer than the longest time, 1000000000000 ms",
        ),
        (
            with_lane("period_ms: 1000000000001"),
            "1000000000001 ms is longer than the longest time, 1000000000000 ms",
        ),
        (
            with_lane("period_ms: \"5\""),
            "expected a number, found the string \"5\"",
        ),
        (
            with_lane("max_threads: -1"),
            "-1 is negative, and this counts something",
        ),
        (
            with_lane("max_threads: 1.5"),
            "expected a whole number, found the number 1.5",
        ),
        (
            with_lane("max_threads: 99999999999999999999"),
            "the number is out of range",
        ),
        (
            with_lane("max_threads: 999999999999999999999999999999999999999999999"),
            "the number is out of range",
        ),
        (
            with_lane("nice_priority: 3000000000"),
            "the number is out of range",
        ),
        (
            with_lane("wall_clock_enabled: yes"),
            "expected true or false, found the string \"yes\"",
        ),
        (
            with_lane("cpu_affinity: [-1]"),
            "-1 is negative, and this counts something",
        ),
        (
            with_lane("cpu_affinity: 1"),
            "expected a list, found the number 1",
        ),
        (
            with_components("  - {type: t, execution: {lane: main}}"),
            "missing field components[0].id",
        ),
        (
            with_components("  - {id: a, type: t}"),
            "missing field components[0].execution",
        ),
        (
            with_components("  - {id: a, type: t, execution: {}}"),
            "missing field components[0].execution.lane",
        ),
        (
            with_components("  - {id: \"\", type: t, execution: {lane: main}}"),
            "an id must not be empty",
        ),
        (
            with_components("  - just text"),
            "expected a map, found the string \"just text\"",
        ),
        (
            component("boundary: {role: edge}"),
            "unknown name \"edge\"; allowed are: processing, input, output, input_output",
        ),
        (
            component("event_sources: [{type: action_goal}]"),
            "action_goal is reserved for actions, which schema version 1 does not have",
        ),
        (
            component("trigger_policy: {type: action_cancel}"),
            "action_cancel is reserved for actions, which schema version 1 does not have",
        ),
        (
            component("trigger_policy: {input: a, inputs: [b]}"),
            "`input` and `inputs` are both given, and mean the same",
        ),
        (
            component("event_sources: [{type: message, input: a, inputs: [b]}]"),
            "`input` and `inputs` are both given, and mean the same",
        ),
        (
            component("trigger_policy: {colaesce: true}"),
            "unexpected field components[0].trigger_policy.colaesce",
        ),
        (component("config: [1]"), "expected a map, found a list"),
        (
            component("config: {a: .nan}"),
            "the number is out of range, or not finite",
        ),
        (
            component("config: {a: 99999999999999999999}"),
            "the number is out of range, or not finite",
        ),
        (
            component("config: {<<: {b: 1}}"),
            "unexpected field components[0].config.<<: merge keys are not supported",
        ),
        (
            with_policy("mode: newest"),
            "unknown name \"newest\"; allowed are: latest, queue, ring_buffer, latched, barrier, previous_tick",
        ),
        (
            with_policy("capacity: -1"),
            "-1 is negative, and this counts something",
        ),
        (
            with_policy("lifespan_ms: soon"),
            "expected a number, found the string \"soon\"",
        ),
        (
            with_loop("max_iterations: 2"),
            "missing field composite_loops[0].loop_policy.type",
        ),
        (
            with_loop("type: fixed_point, convergence: soon"),
            "unknown name \"soon\"; allowed are: single_pass, after_first_iteration, always, stable_state",
        ),
        (
            with_loop("type: fixed_point, residual_threshold: -1"),
            "-1 is negative",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(messages(&text), [message], "{text}");
    }
}

#[test]
fn all_faults_are_reported_at_once_with_their_places() {
    let text = "\
schema_version: 1
graph: {name: x, knid: runnable}
lanes:
  main: {type: event_lop}
components:
  - id: a
    type: t
    execution: {lane: main, priority: urgent}
edges: []
";
    let errors = load_text(text).expect_err("three faults");
    assert_eq!(errors.problems.len(), 3);
    assert_eq!(
        errors.problems[1].diagnostic.code,
        Code::UnsupportedLaneType
    );
    let shown = errors.to_string();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[0],
        "2:18: error [graph_validation_error] unexpected field graph.knid (graph.knid); did you mean \"kind\"?"
    );
    assert!(
        lines[1].starts_with("4:16: error [unsupported_lane_type] unknown name "),
        "{shown}"
    );
    assert!(
        lines[1].ends_with(" (lanes.main.type); did you mean \"event_loop\"?"),
        "{shown}"
    );
    assert!(lines[2].starts_with("8:39: "), "{shown}");
}

#[test]
fn fields_are_read_and_defaults_are_filled_in() {
    let text = "\
schema_version: 1
graph:
  name: full
  config: {emit_health_events: true, nested: {list: [1, -2, 2.5, yes, \"3\", null, true]}}
  clock: {runtime_domain: steady, event_domain: device}
lanes:
  b: {type: fixed_rate, period_ms: 2.5, hz: 10, rt_policy: none, priority: 50, isolation_intent: exclusive}
  a: {type: thread_pool, max_threads: 4, cpu_affinity: [0, 1], nice_priority: -5, thread_name: w}
components:
  - id: c
    type: t
    depends_on: [c]
    boundary: {descriptor: x}
    event_sources: [{type: message, input: in}, {}]
    trigger_policy: {type: batch, batch_size: 0x10, batch_window_ms: 1, coalesce: true}
    execution: {lane: a, budget_ms: 3, on_error: isolate}
edges:
  - {id: e, from: s.c.out, to: c.in, kind: async, policy: {mode: ring_buffer, capacity: 3, readers: multiple, timestamp_domain: \"\"}}
composite_loops:
  - {id: l, components: [c], loop_policy: {type: async_task, convergence: \"\", drop_policy: drop_oldest, residual_threshold: 1}}
";
    let graph = load_text(text).expect("a valid file").graph;
    let config = serde_json::Value::Object(graph.config.clone());
    let expected = serde_json::json!({
        "emit_health_events": true,
        "nested": {"list": [1, -2, 2.5, "yes", "3", null, true]},
    });
    assert_eq!(config, expected);
    let [b, a] = &graph.lanes[..] else {
        panic!("two lanes")
    };
    assert_eq!(
        (b.id.as_str(), b.kind, b.period),
        ("b", LaneKind::FixedRate, Duration::from_micros(2500))
    );
    assert_eq!(
        (b.rt_policy.as_deref(), b.priority.as_deref()),
        (None, Some("50"))
    );
    assert_eq!(
        (a.max_threads, &a.cpu_affinity[..], a.nice_priority),
        (4, &[0, 1][..], -5)
    );
    let component = &graph.components[0];
    assert_eq!(component.boundary.role, None);
    assert_eq!(component.event_sources[1].kind, EventSourceKind::Manual);
    assert_eq!(
        (component.trigger.kind, component.trigger.batch_size),
        (TriggerKind::Batch, 16)
    );
    let edge = &graph.edges[0];
    assert_eq!(
        (edge.from.component.as_str(), edge.from.port.as_str()),
        ("s.c", "out")
    );
    assert_eq!(
        (edge.policy.mode, edge.policy.overflow),
        (Mode::RingBuffer, Overflow::Overwrite)
    );
    assert_eq!(
        graph.loops[0].policy.drop_policy,
        Some(Overflow::DropOldest)
    );
    assert_eq!(graph.loops[0].policy.convergence, None);
}

#[test]
fn nonsense_without_end_is_reported_up_to_a_number() {
    let fields: String = (0..5000).map(|n| format!("field_{n}: 1\n")).collect();
    let messages = messages(&format!("{SMALLEST}{fields}"));
    assert_eq!(messages.len(), 1001);
    assert_eq!(messages[1000], "4000 further problems are not listed");
}

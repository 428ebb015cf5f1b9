//! Files that are too large are refused, each limit by its name.

use crate::support::{command, example, windlass, windlass_with};

#[test]
fn the_limit_of_the_input_holds_for_every_command() {
    let file = example("hello");
    for command in [
        "validate", "plan", "render", "run", "metrics", "trace", "lint", "explain", "bench",
    ] {
        let ended = windlass(&["graph", command, &file, "--max-graph-input-bytes", "64"]).refused();
        let message = "graph input size exceeds limit 64";
        assert!(ended.err.contains(message), "{command}: {}", ended.err);
    }
    for arguments in [
        [
            "graph",
            "diff-plan",
            &file,
            &file,
            "--max-graph-input-bytes",
            "64",
        ],
        [
            "schema",
            "check",
            &file,
            &file,
            "--max-graph-input-bytes",
            "64",
        ],
    ] {
        let ended = windlass(&arguments).refused();
        assert!(ended.err.contains("exceeds limit 64"), "{}", ended.err);
    }
}

#[test]
fn a_file_without_end_costs_nothing() {
    if cfg!(target_os = "linux") {
        let ended = windlass(&["graph", "validate", "/dev/zero"]).refused();
        assert!(ended.err.contains("exceeds limit 1048576"), "{}", ended.err);
    }
}

#[test]
fn each_limit_has_a_flag() {
    let text = "\
schema_version: 1
graph: {name: limits, kind: internal_test, config: {a: {b: {c: 1}}, text: four and more}}
lanes: {main: {type: event_loop}, other: {type: event_loop}}
components:
  - &first {id: first, type: windlass.transform.Identity, event_sources: [{type: message, input: in}], trigger_policy: {type: any_input}, execution: {lane: main}}
  - {id: second, type: windlass.transform.Identity, event_sources: [{type: message, input: in}], trigger_policy: {type: any_input}, execution: &lane {lane: main}}
  - {id: third, type: windlass.boundary.Input, execution: *lane}
edges:
  - {id: one, from: first.out, to: first.in, kind: immediate}
  - {id: two, from: second.out, to: second.in, kind: immediate}
composite_loops:
  - {id: loop_one, components: [first], loop_policy: {type: fixed_point}}
  - {id: loop_two, components: [second], loop_policy: {type: fixed_point}}
";
    windlass_with(&["graph", "validate", "-"], text.as_bytes()).fine();
    for (flag, limit) in [
        ("--max-graph-input-bytes", "64"),
        ("--max-lanes", "1"),
        ("--max-components", "2"),
        ("--max-edges", "1"),
        ("--max-loops", "1"),
        ("--max-id-bytes", "5"),
        ("--max-config-depth", "2"),
        ("--max-config-value-bytes", "12"),
        ("--max-aliases", "0"),
    ] {
        let ended =
            windlass_with(&["graph", "validate", "-", flag, limit], text.as_bytes()).refused();
        assert!(
            ended.err.contains(&format!("limit {limit}")),
            "{flag}: {}",
            ended.err
        );
    }
}

#[test]
fn a_limit_is_a_number() {
    let output = command(&[
        "graph",
        "validate",
        &example("hello"),
        "--max-lanes",
        "many",
    ])
    .output()
    .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
}

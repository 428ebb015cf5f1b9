//! Graphs that are just fine, and graphs that are just not: the borders of the rules.

use windlass_plan::check::Level;
use windlass_plan::diagnostic::Diagnostic;

use crate::support::{check, load_text};

const HEAD: &str = "\
schema_version: 1
graph: {name: g, kind: internal_test}
lanes:
  main: {type: event_loop}
  pool: {type: thread_pool, max_threads: 2}
  queued: {type: thread_pool, queue_capacity: 1}
";

/// What is found in a graph of a source, a sink with these fields, and an edge with this policy.
fn pair(sink: &str, policy: &str) -> Vec<String> {
    codes(&format!(
        "{HEAD}components:
  - {{id: a, type: windlass.boundary.Input, execution: {{lane: main}}}}
  - {{id: b, type: windlass.boundary.Output, {sink}}}
edges:
  - {{id: e, from: a.out, to: b.in, kind: immediate, policy: {{{policy}}}}}
"
    ))
}

fn findings(text: &str) -> Vec<Diagnostic> {
    let loaded = load_text(text).unwrap_or_else(|errors| panic!("{errors}"));
    check(&loaded.graph, Level::Registry)
}

fn codes(text: &str) -> Vec<String> {
    findings(text)
        .iter()
        .map(|finding| finding.code.name().to_owned())
        .collect()
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_pool_without_a_queue_takes_as_many_as_it_has_workers() {
    let on = |lane: &str| {
        format!("trigger_policy: {{type: any_input, input: in}}, execution: {{lane: {lane}}}")
    };
    let policy = |capacity: usize| format!("mode: queue, capacity: {capacity}, overflow: reject");
    assert_eq!(pair(&on("pool"), &policy(2)), NOTHING);
    assert_eq!(pair(&on("pool"), &policy(3)), ["backpressure_risk"]);
    assert_eq!(pair(&on("queued"), &policy(3)), NOTHING);
    assert_eq!(pair(&on("main"), &policy(3)), NOTHING);
    assert_eq!(
        pair(&on("pool"), "capacity: 3"),
        NOTHING,
        "a latest channel holds one"
    );
    let at_once = "trigger_policy: {type: all_inputs, input: in}, execution: {lane: pool}";
    assert_eq!(
        pair(at_once, &policy(3)),
        NOTHING,
        "one invocation takes all"
    );
}

#[test]
fn a_queue_is_deep_beyond_256() {
    let sink = "trigger_policy: {type: any_input, input: in}, execution: {lane: main}";
    assert_eq!(pair(sink, "mode: queue, capacity: 256"), NOTHING);
    assert_eq!(
        pair(sink, "mode: queue, capacity: 257"),
        ["high_queue_depth_latency_risk"]
    );
    assert_eq!(pair(sink, "mode: barrier, capacity: 257"), NOTHING);
}

#[test]
fn policies_that_do_not_drop_may_forbid_drops() {
    let sink = "trigger_policy: {type: any_input, input: in}, execution: {lane: main}";
    for overflow in ["reject", "fail_fast"] {
        let policy = format!("mode: queue, allow_drop: false, overflow: {overflow}");
        assert_eq!(pair(sink, &policy), NOTHING);
    }
    for overflow in ["overwrite", "drop_oldest", "drop_newest"] {
        let policy = format!("mode: queue, allow_drop: false, overflow: {overflow}");
        assert_eq!(pair(sink, &policy), ["invalid_channel_policy"]);
    }
    for mode in ["latest", "latched", "previous_tick"] {
        for overflow in ["drop_newest", "block"] {
            let found = pair(sink, &format!("mode: {mode}, overflow: {overflow}"));
            assert_eq!(found[0], "invalid_channel_policy", "{mode} {overflow}");
        }
        assert_eq!(
            pair(sink, &format!("mode: {mode}, overflow: drop_oldest")),
            NOTHING
        );
    }
}

#[test]
fn a_batch_works_with_any_channel_because_it_fills_over_epochs() {
    let batch = |fields: &str| {
        format!("trigger_policy: {{type: batch, input: in, {fields}}}, execution: {{lane: main}}")
    };
    assert_eq!(pair(&batch("batch_size: 4"), ""), NOTHING);
    assert_eq!(
        pair(&batch("batch_size: 4, batch_window_ms: 5"), ""),
        NOTHING
    );
    assert_eq!(
        pair(&batch("batch_size: 4"), "mode: queue, capacity: 4"),
        NOTHING
    );
    assert_eq!(pair(&batch("batch_size: 1"), ""), NOTHING);
}

#[test]
fn a_timer_has_no_inputs() {
    let timer = |input: &str| {
        format!("event_sources: [{{type: timer, period_ms: 5{input}}}], execution: {{lane: main}}")
    };
    assert_eq!(pair(&timer(""), ""), NOTHING);
    assert_eq!(pair(&timer(", input: in"), ""), ["graph_validation_error"]);
}

#[test]
fn one_component_can_be_both_boundaries() {
    let text = format!(
        "{}components:
  - {{id: a, type: windlass.transform.Identity, boundary: {{role: input_output}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: a.in, kind: delay}}
",
        HEAD.replace("internal_test", "runnable")
    );
    assert_eq!(codes(&text), NOTHING);
}

#[test]
fn all_inputs_need_a_producer_that_runs() {
    let join = |kind: &str| {
        format!(
            "{HEAD}components:
  - {{id: a, type: windlass.boundary.Input, execution: {{lane: main}}}}
  - {{id: b, type: windlass.transform.Identity, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
  - {{id: j, type: windlass.transform.Join, trigger_policy: {{type: {kind}, inputs: [left, right]}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: j.left, kind: immediate}}
  - {{id: f, from: b.out, to: j.right, kind: immediate}}
  - {{id: g, from: b.out, to: b.in, kind: delay}}
"
        )
    };
    assert_eq!(codes(&join("any_input")), ["trigger_never_ready"]);
    assert_eq!(codes(&join("all_inputs")), ["trigger_never_ready"; 2]);
}

#[test]
fn only_the_components_of_the_circle_are_named() {
    let component = |id: &str, before: &str| {
        format!(
            "  - {{id: {id}, type: windlass.boundary.Input, depends_on: [{before}], execution: {{lane: main}}}}\n"
        )
    };
    let components = [("a", "b"), ("b", "a, d"), ("c", "a"), ("d", "")]
        .map(|(id, before)| component(id, before))
        .concat();
    let found = findings(&format!("{HEAD}components:\n{components}edges: []\n"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].involved_components, ["a", "b"]);
}

#[test]
fn a_loop_may_be_named_after_its_member() {
    let text = format!(
        "{HEAD}components:
  - {{id: a, type: windlass.transform.Identity, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: a.in, kind: immediate}}
composite_loops:
  - {{id: a, components: [a], loop_policy: {{type: fixed_point}}}}
"
    );
    assert_eq!(codes(&text), NOTHING);
}

//! The numbers that published examples pin down.

use windlass_graph::check::{Level, check};
use windlass_graph::component::Registry;
use windlass_graph::run::HealthKind;
use windlass_graph::{LoadOptions, Prepared, RunOptions, RunResult, StopReason, load};
use windlass_runtime::Runtime;

use super::stage::{Stage, count, health};
use crate::support;

fn example(name: &str) -> String {
    support::example(name)
}

/// Runs an example with the built-in types, simulated and for real: both do the same.
fn run(text: &str, steps: u64) -> RunResult {
    let loaded = load(text, &LoadOptions::default()).unwrap_or_else(|errors| panic!("{errors}"));
    let registry = Registry::built_in();
    let found = check(&loaded.graph, &registry, Level::Registry);
    assert!(found.is_empty(), "{found:?}");
    let prepared = Prepared::new(loaded.graph, registry).unwrap();
    let options = || RunOptions::steps(steps).traced();
    let result = Runtime::simulated(3).block_on(prepared.run(options()));
    let real = Runtime::builder().workers(2).build().unwrap();
    let real = real.block_on(prepared.run(options()));
    assert_eq!(result.order, real.order);
    assert_eq!(result.trace.events.len(), real.trace.events.len());
    assert!(result.is_ok(), "{:?}", result.errors);
    result
}

#[test]
fn g1_input_identity_output() {
    let result = run(&example("hello"), 1);
    assert_eq!(result.ticks, 3);
    assert_eq!(result.stop_reason, StopReason::TickBound);
    assert_eq!(result.metrics.sum("runtime.channel.publish_count"), 2.0);
    assert_eq!(result.metrics.sum("runtime.channel.delivery_count"), 2.0);
    assert_eq!(result.metrics.sum("runtime.publication.committed"), 2.0);
    assert_eq!(result.trace.events.len(), 16);
    assert_eq!(result.metrics.sum("runtime.trace.event_count"), 16.0);
}

#[test]
fn g2_a_state_edge_is_seen_in_the_next_epoch() {
    let result = run(&example("config_state"), 2);
    let names: Vec<&str> = result.order.iter().map(String::as_str).collect();
    let [first, second, third] = names.as_slice() else {
        panic!("{names:?}")
    };
    assert!(first == second && second != third, "{names:?}");
}

#[test]
fn g3_an_async_edge_splits_a_pipeline_in_two_epochs() {
    let result = run(&example("service"), 2);
    let expected = [
        "client_boundary",
        "validator",
        "client_boundary",
        "worker_result",
        "validator",
        "response_boundary",
    ];
    assert_eq!(result.order, expected);
}

#[test]
fn g4_a_deferred_edge_does_not_order_regions() {
    let loaded = load(example("control_loop"), &LoadOptions::default()).unwrap();
    let prepared = Prepared::new(loaded.graph, Registry::built_in()).unwrap();
    let order = prepared.plan().region_order();
    assert_eq!(order, ["sensor", "actuator", "estimator_controller_loop"]);
}

#[test]
fn g5_a_template_instance_prefixes_its_components() {
    let result = run(&example("template"), 1);
    assert_eq!(result.order, ["demo.source", "demo.transform", "demo.sink"]);
}

#[test]
fn g6_a_partial_loop_is_rejected_for_the_cycle_and_for_the_set() {
    let text = "
schema_version: 1
graph: {name: g6, kind: internal_test}
lanes: {main: {type: event_loop}}
components:
  - {id: a, type: any.Type, execution: {lane: main}}
  - {id: b, type: any.Type, execution: {lane: main}}
  - {id: c, type: any.Type, execution: {lane: main}}
edges:
  - {id: ab, from: a.out, to: b.in, kind: immediate}
  - {id: bc, from: b.out, to: c.in, kind: immediate}
  - {id: ca, from: c.out, to: a.in, kind: immediate}
composite_loops:
  - {id: part, components: [a, b], loop_policy: {type: fixed_point}}
";
    let graph = load(text, &LoadOptions::default()).unwrap().graph;
    let found = check(&graph, &Registry::built_in(), Level::Schema);
    let codes: Vec<&str> = found.iter().map(|finding| finding.code.name()).collect();
    assert!(codes.contains(&"immediate_cycle_without_loop"), "{codes:?}");
    assert!(codes.contains(&"partial_composite_loop"), "{codes:?}");
}

#[test]
fn g7_priority_orders_what_does_not_depend_on_each_other() {
    let sources = "
components:
  - {id: first, type: test.Source, execution: {lane: main}}
  - {id: second, type: test.Sink, execution: {lane: main, priority: high}}
edges:";
    let apart = Stage::new(&format!("{sources} []"));
    assert_eq!(apart.steps(1).order, ["second", "first"]);
    let linked = Stage::new(&format!(
        "{sources}\n  - {{id: e, from: first.out, to: second.in, kind: immediate}}"
    ));
    assert_eq!(linked.steps(1).order, ["first", "second"]);
}

/// Five messages for a pool of one worker with room for two more.
fn five_for_three(overflow: &str) -> (Vec<String>, RunResult) {
    let stage = Stage::new(&format!(
        "
lanes:
  main: {{type: event_loop}}
  pool: {{type: thread_pool, max_threads: 1, queue_capacity: 2, overflow: {overflow}}}
components:
  - {{id: source, type: test.Source, config: {{epochs: [[1, 2, 3, 4, 5]]}}, execution: {{lane: main}}}}
  - {{id: worker, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: pool, reentrant: true}}}}
edges:
  - {{id: jobs, from: source.out, to: worker.in, kind: immediate, policy: {{mode: queue, capacity: 5}}}}
"
    ));
    let result = stage.steps(1);
    (stage.log.take(), result)
}

#[test]
fn g8_a_full_lane_keeps_the_oldest_or_the_newest() {
    for (overflow, expected) in [
        (
            "drop_newest",
            ["worker: in=1", "worker: in=2", "worker: in=3"],
        ),
        (
            "reject_new",
            ["worker: in=1", "worker: in=2", "worker: in=3"],
        ),
        (
            "drop_oldest",
            ["worker: in=3", "worker: in=4", "worker: in=5"],
        ),
    ] {
        let (mut seen, result) = five_for_three(overflow);
        seen.sort();
        assert_eq!(seen, expected, "{overflow}");
        assert_eq!(count(&result, "scheduler.rejected_count", "pool"), 2);
        let events = result.health.iter();
        let events = events.filter(|event| event.kind == HealthKind::SchedulerReject);
        let events: Vec<_> = events.collect();
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].channel_id, "jobs");
        assert_eq!(health(&result, HealthKind::SchedulerReject), 2);
    }
    let result = run(&example("thread_pool"), 5);
    assert_eq!(count(&result, "scheduler.rejected_count", "pool"), 2);
    assert_eq!(count(&result, "component.execution_count", "worker"), 3);
}

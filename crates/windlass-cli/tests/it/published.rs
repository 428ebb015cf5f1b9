//! The numbers that published examples pin down.

use serde_json::{Value, json};

use crate::support::{broken, example, example_text, windlass, windlass_with};

fn run(name: &str, steps: &str) -> Value {
    let file = example(name);
    let arguments = ["graph", "run", &file, "--steps", steps, "--format", "json"];
    windlass(&arguments).fine().json()
}

#[test]
fn g1_hello_counts_what_it_should() {
    let result = run("hello", "1");
    assert_eq!(result["ticks"], 3);
    assert_eq!(result["stop_reason"], "tick_bound");
    assert_eq!(result["channel_publish_count"], 2);
    assert_eq!(result["channel_delivery_count"], 2);
    assert_eq!(result["runtime_publication_committed"], 2);
    assert_eq!(result["trace_event_count"], 16);
    let trace = windlass(&["graph", "trace", &example("hello"), "--format", "json"]).fine();
    assert_eq!(trace.json()["event_count"], 16);
    let metrics = windlass(&["graph", "metrics", &example("hello"), "--format", "json"]).fine();
    assert_eq!(sample(&metrics.json(), "runtime.trace.event_count", ""), 16);
}

#[test]
fn g2_state_is_seen_an_epoch_later() {
    let result = run("config_state", "2");
    assert_eq!(result["order"], json!(["source", "source", "consumer"]));
}

#[test]
fn g3_the_service_answers_an_epoch_later() {
    let expected = [
        "client_boundary",
        "validator",
        "client_boundary",
        "worker_result",
        "validator",
        "response_boundary",
    ];
    assert_eq!(run("service", "2")["order"], json!(expected));
}

#[test]
fn g4_the_loop_is_one_region() {
    let file = example("control_loop");
    let plan = windlass(&["graph", "plan", &file, "--format", "json"]).fine();
    let expected = json!(["sensor", "actuator", "estimator_controller_loop"]);
    assert_eq!(plan.json()["region_order"], expected);
}

#[test]
fn g5_a_template_becomes_an_instance() {
    let expected = json!(["demo.source", "demo.transform", "demo.sink"]);
    assert_eq!(run("template", "1")["order"], expected);
}

#[test]
fn g6_a_partial_loop_is_refused() {
    let file = broken("partial_composite_loop");
    let ended = windlass(&["graph", "validate", &file, "--format", "json"]).refused();
    let codes: Vec<Value> = ended.json()["diagnostics"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|diagnostic| diagnostic["code"].clone())
        .collect();
    assert_eq!(
        codes,
        ["partial_composite_loop", "immediate_cycle_without_loop"]
    );
}

#[test]
fn g7_priority_decides_unless_there_is_a_dependency() {
    let expected = json!(["second", "first", "join", "output"]);
    assert_eq!(run("priority", "1")["order"], expected);

    let source = "  - id: second\n    type: windlass.boundary.Input\n    boundary: {role: input}\n";
    let follower = "  - id: second\n    type: windlass.transform.Identity\n    \
                    event_sources: [{type: message, input: in}]\n    \
                    trigger_policy: {type: any_input}\n";
    let text = example_text("priority");
    assert!(text.contains(source));
    let text = text.replace(source, follower)
        + "  - {id: dependency, from: first.out, to: second.in, kind: immediate}\n";
    let ended = windlass_with(&["graph", "run", "-", "--format", "json"], text.as_bytes()).fine();
    let expected = json!(["first", "second", "join", "output"]);
    assert_eq!(ended.json()["order"], expected);
}

#[test]
fn g8_a_full_pool_rejects() {
    let result = run("thread_pool", "5");
    let runs = result["order"].as_array().expect("a list").iter();
    assert_eq!(runs.filter(|id| *id == "worker").count(), 3);
    let events = result["health_events"].as_array().expect("a list");
    let rejects = events
        .iter()
        .filter(|event| event["kind"] == "scheduler_reject");
    assert_eq!(rejects.count(), 1);
    let file = example("thread_pool");
    let metrics = [
        "graph", "metrics", &file, "--steps", "5", "--format", "json",
    ];
    let metrics = windlass(&metrics).fine().json();
    assert_eq!(
        sample(&metrics, "runtime.scheduler.rejected_count", "pool"),
        2
    );
    assert_eq!(causes("drop_newest"), ["jobs#1", "jobs#2", "jobs#3"]);
    assert_eq!(causes("drop_oldest"), ["jobs#3", "jobs#4", "jobs#5"]);
}

/// The messages that the worker of the pool has seen.
fn causes(overflow: &str) -> Vec<String> {
    let text = example_text("thread_pool");
    let text = text.replace("overflow: drop_newest", &format!("overflow: {overflow}"));
    let arguments = ["graph", "trace", "-", "--steps", "5", "--format", "json"];
    let trace = windlass_with(&arguments, text.as_bytes()).fine().json();
    let events = trace["events"].as_array().expect("a list").iter();
    events
        .filter(|e| e["name"] == "component_execute" && e["component_id"] == "worker")
        .map(|e| e["causation_id"].as_str().expect("a cause").to_owned())
        .collect()
}

fn sample(metrics: &Value, name: &str, lane: &str) -> Value {
    let mut samples = metrics["samples"].as_array().expect("samples").iter();
    let found = samples.find(|sample| sample["name"] == name && sample["lane"] == lane);
    found.expect("the sample is there")["value"].clone()
}

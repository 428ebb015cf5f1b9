//! The trace: its fields, its bounds, and Chrome's format.

use windlass_graph::RunOptions;

use super::stage::Stage;

fn chain() -> Stage {
    Stage::new(
        "
components:
  - {id: a, type: test.Source, config: {epochs: [[1]], repeat: true}, execution: {lane: main}}
  - {id: b, type: test.Pass, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: c, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: ab, from: a.out, to: b.in, kind: immediate}
  - {id: bc, from: b.out, to: c.in, kind: immediate}
",
    )
}

#[test]
fn messages_know_where_they_come_from() {
    let result = chain().steps(2);
    let calls = result.trace.events.iter();
    let calls = calls.filter(|event| event.name.name() == "component_execute");
    let ids: Vec<(&str, &str, &str, u64, u64)> = calls
        .map(|e| {
            (
                e.component_id.as_str(),
                e.causation_id.as_str(),
                e.correlation_id.as_str(),
                e.epoch_id,
                e.transaction_id,
            )
        })
        .collect();
    assert_eq!(
        ids,
        [
            ("a", "", "", 1, 1),
            ("b", "ab#1", "ab#1", 1, 2),
            ("c", "bc#1", "ab#1", 1, 3),
            ("a", "", "", 2, 4),
            ("b", "ab#2", "ab#2", 2, 5),
            ("c", "bc#2", "ab#2", 2, 6),
        ]
    );
}

#[test]
fn a_trace_is_bounded_and_says_what_it_left_out() {
    let mut options = RunOptions::steps(100).traced();
    options.trace_capacity = 20;
    let result = chain().run(options);
    assert_eq!(result.trace.events.len(), 20);
    assert_eq!(result.trace.dropped, 1600 - 20);
    assert_eq!(result.metrics.sum("runtime.trace.event_count"), 1600.0);
    let untraced = chain().run(RunOptions::steps(100));
    assert!(untraced.trace.events.is_empty());
}

#[test]
fn the_order_of_a_run_is_bounded() {
    let mut options = RunOptions::steps(100);
    options.order_capacity = 5;
    let result = chain().run(options);
    assert_eq!(result.order.len(), 5);
    assert_eq!(result.ticks, 300);
}

#[test]
fn chromes_format_has_complete_events_and_named_threads() {
    let mut out = Vec::new();
    chain().steps(1).trace.write_chrome(&mut out).unwrap();
    let chrome: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(chrome["displayTimeUnit"], "ns");
    let events = chrome["traceEvents"].as_array().unwrap();
    let complete: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
    assert_eq!(complete.len(), 16);
    for event in complete {
        assert_eq!(event["pid"], 1);
        assert!(event["ts"].is_number() && event["dur"].is_number());
        assert!(event["tid"].as_u64().unwrap() >= 1);
    }
    assert!(
        events
            .iter()
            .any(|e| e["ph"] == "M" && e["name"] == "thread_name")
    );
}

#[test]
fn every_event_has_every_field() {
    let mut out = Vec::new();
    chain().steps(1).trace.write_json(&mut out).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let fields = [
        "name",
        "trace_id",
        "phase",
        "component_id",
        "channel_id",
        "lane",
        "worker_id",
        "epoch_id",
        "transaction_id",
        "correlation_id",
        "causation_id",
        "start_offset_ns",
        "duration_ns",
        "attributes",
    ];
    for event in trace["events"].as_array().unwrap() {
        let object = event.as_object().unwrap();
        assert_eq!(object.len(), fields.len());
        assert!(fields.iter().all(|field| object.contains_key(*field)));
    }
}

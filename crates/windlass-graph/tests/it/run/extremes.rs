//! The longest times and the largest counts that a file may hold.

use super::stage::{Stage, count};

/// More than twice around the clock, if it went around.
const EPOCHS: u64 = 50;
const MOST: u64 = u64::MAX;
/// The longest time of a file, in milliseconds.
const LONGEST: u64 = 1_000_000_000_000;

fn runs_in_every_epoch(text: &str, component: &str) {
    let result = Stage::new(text).steps(EPOCHS);
    let runs = count(&result, "component.execution_count", component);
    assert_eq!(runs, EPOCHS, "{text}");
}

#[test]
fn the_clock_of_a_slow_lane_stops_at_its_end() {
    for rate in [
        "hz: 0.0000000001".to_owned(),
        format!("period_ms: {LONGEST}"),
    ] {
        let text = format!(
            "
lanes: {{main: {{type: fixed_rate, {rate}}}}}
components: [{{id: a, type: test.Sink, execution: {{lane: main}}}}]
edges: []
"
        );
        runs_in_every_epoch(&text, "a");
    }
}

#[test]
fn a_slow_timer_fires_to_the_end_of_the_clock() {
    for lane in ["event_loop", &format!("fixed_rate, period_ms: {LONGEST}")] {
        let text = format!(
            "
lanes: {{main: {{type: {lane}}}}}
components:
  - {{id: a, type: test.Sink, event_sources: [{{type: timer, period_ms: {LONGEST}}}], execution: {{lane: main}}}}
edges: []
"
        );
        runs_in_every_epoch(&text, "a");
    }
}

#[test]
fn windows_and_intervals_may_be_as_long_as_time_itself() {
    let triggers = [
        "type: batch, batch_size: 99, batch_window_ms",
        "type: debounce, debounce_window_ms",
        "type: rate_limit, min_interval_ms",
        "type: time_sync, sync_slop_ms",
        "type: watermark, watermark_lateness_ms",
        "type: any_input, max_latency_ms",
    ];
    for trigger in triggers {
        let text = format!(
            "
lanes: {{main: {{type: fixed_rate, period_ms: {LONGEST}}}}}
components:
  - {{id: a, type: test.Source, config: {{epochs: [[{{value: 1, at: 1e15}}], [{{value: 2, at: -1e15}}]], repeat: 1}}, execution: {{lane: main}}}}
  - {{id: b, type: test.Sink, trigger_policy: {{{trigger}: {LONGEST}, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: b.in, kind: immediate, policy: {{lifespan_ms: {LONGEST}, deadline_ms: {LONGEST}}}}}
"
        );
        runs_in_every_epoch(&text, "a");
    }
}

#[test]
fn a_loop_may_pause_as_long_as_time_itself() {
    let text = format!(
        "
components:
  - {{id: a, type: test.Sink, execution: {{lane: main}}}}
  - {{id: m, type: test.Pass, execution: {{lane: main}}}}
edges:
  - {{id: own, from: m.out, to: m.own, kind: immediate}}
composite_loops:
  - {{id: loop, components: [m], loop_policy: {{type: fixed_point, min_interval_ms: {LONGEST}, budget_ms: {LONGEST}}}}}
"
    );
    runs_in_every_epoch(&text, "a");
    runs_in_every_epoch(&text, "m");
}

#[test]
fn a_batch_and_a_queue_may_be_of_any_size() {
    let pair = |trigger: &str, policy: &str| {
        format!(
            "
components:
  - {{id: a, type: test.Source, config: {{epochs: [[1]], repeat: 1}}, execution: {{lane: main}}}}
  - {{id: b, type: test.Sink, trigger_policy: {{{trigger}, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: b.in, kind: immediate, policy: {{{policy}}}}}
"
        )
    };
    let batch = Stage::new(&pair(&format!("type: batch, batch_size: {MOST}"), ""));
    assert_eq!(
        count(&batch.steps(EPOCHS), "trigger.pending_drop_count", "b"),
        0
    );
    for mode in ["queue", "ring_buffer", "latest"] {
        let policy = format!("mode: {mode}, capacity: {MOST}, readers: multi");
        runs_in_every_epoch(&pair("type: all_inputs", &policy), "b");
    }
}

#[test]
fn a_pool_with_endless_room_rejects_nothing() {
    let stage = Stage::new(&format!(
        "
lanes: {{main: {{type: event_loop}}, pool: {{type: thread_pool, max_threads: 2, queue_capacity: {MOST}}}}}
components:
  - {{id: a, type: test.Source, config: {{epochs: [[1, 2, 3, 4, 5]]}}, execution: {{lane: main}}}}
  - {{id: b, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: pool}}}}
edges:
  - {{id: e, from: a.out, to: b.in, kind: immediate, policy: {{mode: queue, capacity: 5}}}}
"
    ));
    let result = stage.steps(1);
    assert_eq!(count(&result, "component.execution_count", "b"), 5);
    assert_eq!(count(&result, "scheduler.rejected_count", "pool"), 0);
}

//! Triggers: which messages make an invocation, and when.

use super::stage::{Stage, count};

/// Two sources at the ports `x` and `y` of a sink with this trigger; both edges are queues.
fn two(x: &str, y: &str, trigger: &str) -> Stage {
    Stage::new(&format!(
        "
lanes: {{main: {{type: fixed_rate, period_ms: 10}}}}
components:
  - {{id: a, type: test.Source, config: {{epochs: {x}}}, execution: {{lane: main}}}}
  - {{id: b, type: test.Source, config: {{epochs: {y}}}, execution: {{lane: main}}}}
  - {{id: c, type: test.Sink, trigger_policy: {{inputs: [y, x], {trigger}}}, execution: {{lane: main}}}}
edges:
  - {{id: ex, from: a.out, to: c.x, kind: immediate, policy: {{mode: queue, capacity: 8}}}}
  - {{id: ey, from: b.out, to: c.y, kind: immediate, policy: {{mode: queue, capacity: 8}}}}
"
    ))
}

#[test]
fn any_input_runs_once_for_each_message_ports_by_name() {
    let stage = two("[[1, 2]]", "[[3]]", "type: any_input");
    assert_eq!(stage.seen(2), ["c: x=1", "c: x=2", "c: y=3"]);
}

#[test]
fn on_event_request_and_task_ready_run_once_for_each_message() {
    for kind in ["on_event", "request", "task_ready"] {
        let stage = two("[[1, 2]]", "[[3]]", &format!("type: {kind}"));
        assert_eq!(stage.seen(2), ["c: x=1", "c: x=2", "c: y=3"], "{kind}");
    }
}

#[test]
fn all_inputs_waits_for_each_and_runs_once_a_check() {
    let stage = two("[[1, 2], [], []]", "[[], [8, 9], []]", "type: all_inputs");
    let result = stage.steps(4);
    assert_eq!(stage.log.take(), ["c: x=1 y=8", "c: x=2 y=9"]);
    assert_eq!(count(&result, "trigger.ready_count", "c"), 2);
    assert_eq!(count(&result, "trigger.suppressed_count", "c"), 1);
}

#[test]
fn conditions_are_what_their_names_say() {
    let all = "type: condition, condition: all_inputs_ready";
    assert_eq!(two("[[1]]", "[[], [2]]", all).seen(3), ["c: x=1 y=2"]);
    let any = "type: condition, condition: any_input_ready";
    assert_eq!(two("[[1]]", "[[], [2]]", any).seen(3), ["c: x=1", "c: y=2"]);
    let timed = "type: condition, condition: event_timestamp_present";
    let stage = two("[[1, {value: 2, at: 5}]]", "[[]]", timed);
    let result = stage.steps(1);
    assert_eq!(stage.log.take(), ["c: x=2"]);
    assert_eq!(count(&result, "trigger.condition_suppressed_count", "c"), 1);
}

#[test]
fn time_sync_drops_the_oldest_until_the_fronts_are_of_the_same_time() {
    let x = "[[{value: 1, at: 0}, {value: 2, at: 100}], [{value: 3, at: 200}]]";
    let y = "[[{value: 8, at: 103}], [{value: 9, at: 150}, {value: 10, at: 199}]]";
    let stage = two(x, y, "type: time_sync, sync_slop_ms: 5");
    let result = stage.steps(3);
    assert_eq!(stage.log.take(), ["c: x=2 y=8", "c: x=3 y=10"]);
    assert_eq!(count(&result, "trigger.time_sync_drop_count", "c"), 2);
}

#[test]
fn time_sync_without_times_is_all_inputs() {
    let stage = two("[[1]]", "[[{value: 2, at: 500}]]", "type: time_sync");
    assert_eq!(stage.seen(2), ["c: x=1 y=2"]);
}

#[test]
fn a_batch_runs_when_it_is_full_once_a_check() {
    let stage = two(
        "[[1, 2, 3], [4], [5]]",
        "[[]]",
        "type: batch, batch_size: 2",
    );
    let result = stage.steps(3);
    assert_eq!(stage.log.take(), ["c: x=1 x=2", "c: x=3 x=4"]);
    assert_eq!(count(&result, "trigger.batch_flush_count", "c"), 2);
}

#[test]
fn a_batch_runs_with_what_is_there_when_its_window_ends() {
    // Ticks are 10 ms apart: the first message comes at 10, the window ends at 35.
    let stage = two(
        "[[], [1], [2], [], [3]]",
        "[[]]",
        "type: batch, batch_size: 9, batch_window_ms: 25",
    );
    for (steps, seen) in [
        (4, vec![]),
        (5, vec!["c: x=1 x=2 x=3"]),
        (6, vec!["c: x=1 x=2 x=3"]),
    ] {
        assert_eq!(stage.seen(steps), seen, "{steps}");
    }
}

#[test]
fn a_watermark_drops_what_is_too_late_and_passes_what_has_no_time() {
    let x = "[[{value: 1, at: 100}, {value: 2, at: 90}, {value: 3, at: 79}, 4]]";
    let y = "[[{value: 5, at: 81}, {value: 6, at: 300}], [{value: 7, at: 100}]]";
    let stage = two(x, y, "type: watermark, watermark_lateness_ms: 20");
    let result = stage.steps(2);
    assert_eq!(
        stage.log.take(),
        ["c: x=1", "c: x=2", "c: x=4", "c: y=5", "c: y=6"]
    );
    assert_eq!(count(&result, "trigger.late_drop_count", "c"), 2);
}

#[test]
fn coalesce_takes_the_newest_of_each_input() {
    let stage = two(
        "[[1, 2, 3], [4]]",
        "[[8, 9]]",
        "type: any_input, coalesce: true",
    );
    let result = stage.steps(2);
    assert_eq!(stage.log.take(), ["c: x=3 y=9", "c: x=4"]);
    assert_eq!(count(&result, "trigger.coalesced_count", "c"), 3);
}

#[test]
fn debounce_waits_until_messages_stop_coming() {
    // They come at 0, 10 and 20; 25 ms of silence are over at 45, and the tick is at 50.
    let stage = two(
        "[[1], [2], [3]]",
        "[[]]",
        "type: debounce, debounce_window_ms: 25",
    );
    assert!(stage.seen(5).is_empty());
    let result = stage.steps(6);
    assert_eq!(stage.log.take(), ["c: x=3"]);
    assert_eq!(count(&result, "trigger.coalesced_count", "c"), 2);
}

#[test]
fn a_rate_limit_spreads_messages_over_time() {
    let stage = two(
        "[[1, 2, 3]]",
        "[[]]",
        "type: rate_limit, min_interval_ms: 20",
    );
    assert_eq!(stage.seen(2), ["c: x=1"]);
    let result = stage.steps(5);
    assert_eq!(stage.log.take(), ["c: x=1", "c: x=2", "c: x=3"]);
    assert_eq!(
        count(&result, "trigger.rate_limit_suppressed_count", "c"),
        2
    );
}

#[test]
fn a_least_interval_gates_every_trigger_that_inputs_drive() {
    for (trigger, seen) in [
        ("any_input", vec!["c: x=1", "c: x=2"]),
        ("batch, batch_size: 1", vec!["c: x=1", "c: x=2"]),
        ("debounce", vec!["c: x=1", "c: x=3"]),
        ("any_input, coalesce: true", vec!["c: x=1", "c: x=3"]),
    ] {
        let stage = two(
            "[[1], [2], [3]]",
            "[[]]",
            &format!("type: {trigger}, min_interval_ms: 20"),
        );
        assert_eq!(stage.seen(3), seen, "{trigger}");
    }
}

#[test]
fn what_has_waited_too_long_is_dropped() {
    let stage = two(
        "[[1]]",
        "[[], [], [], [9]]",
        "type: all_inputs, max_latency_ms: 15",
    );
    let result = stage.steps(5);
    assert!(stage.log.take().is_empty());
    assert_eq!(count(&result, "trigger.timeout_drop_count", "c"), 1);
}

#[test]
fn how_many_wait_is_bounded_and_the_oldest_give_way() {
    let stage = two(
        "[[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12], [13]]",
        "[[], [], [99]]",
        "type: all_inputs",
    );
    let result = stage.steps(3);
    // Capacity 8, and one more.
    assert_eq!(stage.log.take(), ["c: x=5 y=99"]);
    assert_eq!(count(&result, "trigger.pending_drop_count", "c"), 4);
}

#[test]
fn manual_runs_once_every_epoch_and_takes_along_what_is_there() {
    let stage = Stage::new(
        "
components:
  - {id: a, type: test.Source, config: {epochs: [[1, 2], [], [3]]}, execution: {lane: main}}
  - {id: b, type: test.Sink, execution: {lane: main}}
edges:
  - {id: e, from: a.out, to: b.in, kind: immediate, policy: {mode: queue, capacity: 4}}
",
    );
    assert_eq!(stage.seen(3), ["b: in=1 in=2", "b:", "b: in=3"]);
}

#[test]
fn timers_fire_at_the_start_and_then_by_their_period() {
    let graph = |lane: &str, period: u64| {
        Stage::new(&format!(
            "
lanes: {{main: {{{lane}}}}}
components:
  - {{id: t, type: test.Sink, event_sources: [{{type: timer, period_ms: {period}}}], execution: {{lane: main}}}}
edges: []
"
        ))
    };
    // On a lane with a rate, by the lane's clock.
    let on_rate = graph("type: fixed_rate, period_ms: 10", 25);
    // Ticks at 0, 10, ..., 100: due at 0, 25, 50, 75, 100.
    assert_eq!(on_rate.seen(11).len(), 5);
    let fast = graph("type: fixed_rate, hz: 100", 4);
    assert_eq!(fast.seen(5).len(), 5, "once a tick at most");
    // On an event loop, time goes from timer to timer.
    let on_loop = graph("type: event_loop", 1000);
    assert_eq!(on_loop.seen(7).len(), 7);
}

#[test]
fn the_clock_of_an_event_loop_goes_to_the_nearest_timer_or_window() {
    let stage = Stage::new(
        "
components:
  - {id: slow, type: test.Sink, event_sources: [{type: timer, period_ms: 15}], execution: {lane: main}}
  - {id: fast, type: test.Sink, event_sources: [{type: timer, period_ms: 10}], execution: {lane: main}}
edges: []
",
    );
    let result = stage.steps(5);
    // At 0, 10, 15, 20 and 30.
    let expected = ["slow", "fast", "fast", "slow", "fast", "slow", "fast"];
    assert_eq!(result.order, expected);
}

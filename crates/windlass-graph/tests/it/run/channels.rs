//! Edges: when a message becomes visible, how it is kept, and what happens to those that do not
//! fit.

use std::future::Future;
use std::task::Poll;

use windlass_graph::run::{HealthKind, TapError};
use windlass_graph::{RunOptions, StopReason};
use windlass_runtime::Runtime;
use windlass_value::Payload;

use super::stage::{Stage, count, health};

/// A source that plays `epochs`, an edge with this `kind` and `policy`, and a sink with this
/// trigger.
fn pair(epochs: &str, kind: &str, policy: &str, trigger: &str) -> Stage {
    Stage::new(&format!(
        "
components:
  - {{id: a, type: test.Source, config: {{epochs: {epochs}}}, execution: {{lane: main}}}}
  - {{id: b, type: test.Sink, trigger_policy: {{{trigger}}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: b.in, kind: {kind}, policy: {{{policy}}}}}
"
    ))
}

const ANY: &str = "type: any_input, input: in";

#[test]
fn immediate_messages_are_seen_in_the_same_epoch_and_deferred_ones_in_the_next() {
    for (kind, mode, first_seen) in [
        ("immediate", "latest", 1),
        ("delay", "latest", 2),
        ("state", "latest", 2),
        ("async", "latest", 2),
        ("immediate", "previous_tick", 2),
        ("delay", "previous_tick", 3),
    ] {
        for steps in 1..4 {
            let stage = pair("[[7]]", kind, &format!("mode: {mode}"), ANY);
            let expected: &[&str] = if steps >= first_seen {
                &["b: in=7"]
            } else {
                &[]
            };
            assert_eq!(stage.seen(steps), expected, "{kind} {mode} {steps}");
        }
    }
}

#[test]
fn latest_keeps_the_newest_and_counts_what_nobody_read() {
    let stage = pair("[[1, 2, 3], [4]]", "immediate", "", ANY);
    let result = stage.steps(2);
    assert_eq!(stage.log.take(), ["b: in=3", "b: in=4"]);
    assert_eq!(count(&result, "channel.publish_count", "e"), 4);
    assert_eq!(count(&result, "channel.delivery_count", "e"), 2);
    // As published examples count: every publish after the first.
    assert_eq!(count(&result, "channel.overwrite_count", "e"), 3);
    assert_eq!(count(&result, "channel.lost_count", "e"), 2);
    assert_eq!(health(&result, HealthKind::ChannelOverflow), 2);
}

#[test]
fn a_latest_value_that_was_read_raises_no_event() {
    let stage = pair("[[1], [2], [3]]", "immediate", "", ANY);
    let result = stage.steps(3);
    assert_eq!(count(&result, "channel.overwrite_count", "e"), 2);
    assert_eq!(count(&result, "channel.lost_count", "e"), 0);
    assert!(result.health.is_empty());
}

#[test]
fn queues_keep_their_order_and_each_overflow_policy_does_what_it_says() {
    for mode in ["queue", "ring_buffer"] {
        for (overflow, seen, counter, events) in [
            ("overwrite", ["b: in=2", "b: in=3"], "overwrite", 1),
            ("drop_oldest", ["b: in=2", "b: in=3"], "drop", 1),
            ("drop_newest", ["b: in=1", "b: in=2"], "drop", 1),
            ("reject", ["b: in=1", "b: in=2"], "reject", 1),
            ("block", ["b: in=1", "b: in=2"], "reject", 1),
        ] {
            let policy = format!("mode: {mode}, capacity: 2, overflow: {overflow}");
            let stage = pair("[[1, 2, 3]]", "immediate", &policy, ANY);
            let result = stage.steps(1);
            assert_eq!(stage.log.take(), seen, "{mode} {overflow}");
            let counted = count(&result, &format!("channel.{counter}_count"), "e");
            assert_eq!(counted, 1, "{mode} {overflow}");
            assert_eq!(health(&result, HealthKind::ChannelOverflow), events);
        }
    }
}

#[test]
fn fail_fast_ends_the_run() {
    let policy = "mode: queue, capacity: 2, overflow: fail_fast";
    let stage = pair("[[1, 2, 3]]", "immediate", policy, ANY);
    let result = stage.run(RunOptions::steps(3));
    assert_eq!(result.stop_reason, StopReason::Error);
    assert!(result.errors[0].message.contains("channel e is full"));
    assert!(stage.log.take().is_empty(), "nothing later was committed");
}

#[test]
fn a_barrier_delivers_when_it_is_full() {
    let policy = "mode: barrier, capacity: 3, overflow: reject";
    let stage = pair("[[1], [2], [3], [4]]", "immediate", policy, ANY);
    assert!(stage.seen(2).is_empty());
    assert_eq!(stage.seen(4), ["b: in=1", "b: in=2", "b: in=3"]);
}

#[test]
fn a_publish_that_one_edge_refuses_reaches_none() {
    let stage = Stage::new(
        "
components:
  - {id: a, type: test.Source, config: {epochs: [[1, 2]]}, execution: {lane: main}}
  - {id: b, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: c, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: small, from: a.out, to: b.in, kind: immediate, policy: {mode: queue, capacity: 1, overflow: reject}}
  - {id: large, from: a.out, to: c.in, kind: immediate, policy: {mode: queue, capacity: 9, overflow: reject}}
",
    );
    let result = stage.steps(1);
    assert_eq!(stage.log.take(), ["b: in=1", "c: in=1"]);
    assert_eq!(count(&result, "channel.reject_count", "small"), 1);
    assert_eq!(count(&result, "channel.reject_count", "large"), 0);
    assert_eq!(count(&result, "channel.publish_count", "large"), 1);
    assert_eq!(result.metrics.sum("runtime.publication.failed_commit"), 2.0);
}

#[test]
fn what_there_may_be_one_of_goes_to_one_reader_only() {
    let graph = |second: &str| {
        let mut stage = Stage::new(&format!(
            "
components:
  - {{id: a, type: test.Unique, execution: {{lane: main}}}}
  - {{id: b, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: one, from: a.out, to: b.in, kind: immediate, policy: {{copy_policy: move_only}}}}
{second}"
        ));
        let open = windlass_graph::component::Descriptor::new().open_ports();
        stage.registry.function("test.Unique", open, |invocation| {
            invocation.publish_to("out", Payload::unique(std::cell::Cell::new(1).into_inner()));
            Ok(())
        });
        stage
    };
    assert_eq!(graph("").seen(1).len(), 1);
    let two = graph("  - {id: two, from: a.out, to: b.other, kind: immediate}\n");
    let result = two.run(RunOptions::steps(1));
    assert!(two.log.take().is_empty());
    assert_eq!(result.stop_reason, StopReason::TickBound, "the run goes on");
    assert_eq!(count(&result, "channel.reject_count", "one"), 1);
}

#[test]
fn async_edges_take_so_many_and_say_so() {
    for (overflow, seen, accepted) in [
        ("reject", vec!["b: in=1", "b: in=2"], 2),
        ("drop_oldest", vec!["b: in=2", "b: in=3"], 3),
        ("overwrite", vec!["b: in=2", "b: in=3"], 3),
    ] {
        let policy = format!("mode: queue, capacity: 9, max_inflight: 2, overflow: {overflow}");
        let stage = pair("[[1, 2, 3]]", "async", &policy, ANY);
        let result = stage.steps(2);
        assert_eq!(stage.log.take(), seen, "{overflow}");
        assert_eq!(count(&result, "async.accepted_count", "e"), accepted);
        assert_eq!(count(&result, "async.max_in_flight_count", "e"), 2);
        let lost = count(&result, "async.rejected_count", "e")
            + count(&result, "async.dropped_count", "e")
            + count(&result, "async.overwrite_count", "e");
        assert_eq!(lost, 1, "{overflow}");
        let told = match overflow {
            "reject" => HealthKind::TaskReject,
            _ => HealthKind::ChannelOverflow,
        };
        assert_eq!(health(&result, told), 1, "{overflow}");
        assert_eq!(count(&result, "async.in_flight_count", "e"), 0);
    }
}

#[test]
fn publish_says_when_an_async_edge_has_no_room() {
    let stage = {
        let mut stage = pair("[]", "async", "max_inflight: 2, overflow: reject", ANY);
        let log = stage.log.clone();
        let open = windlass_graph::component::Descriptor::new()
            .open_ports()
            .open_config();
        stage
            .registry
            .function("test.Source", open, move |invocation| {
                let taken: Vec<bool> = (0..3).map(|n| invocation.publish_to("out", n)).collect();
                log.push(format!("{taken:?}"));
                Ok(())
            });
        stage
    };
    assert_eq!(stage.seen(1), ["[true, true, false]"]);
}

#[test]
fn messages_too_old_are_dropped_and_late_ones_are_marked() {
    // Ticks are 10 ms apart; the sink looks every 40 ms.
    let stage = |policy: &str| {
        Stage::new(&format!(
            "
lanes: {{main: {{type: fixed_rate, period_ms: 10}}}}
components:
  - {{id: a, type: test.Source, config: {{epochs: [[], [1], [], [2]]}}, execution: {{lane: main}}}}
  - {{id: b, type: test.Sink, event_sources: [{{type: timer, period_ms: 40}}], execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: b.in, kind: immediate, policy: {{mode: queue, capacity: 9, {policy}}}}}
"
        ))
    };
    let stale = stage("lifespan_ms: 20");
    let result = stale.steps(5);
    assert_eq!(stale.log.take(), ["b:", "b: in=2"]);
    assert_eq!(count(&result, "channel.stale_drop_count", "e"), 1);
    assert_eq!(health(&result, HealthKind::ChannelStaleDrop), 1);
    let late = stage("deadline_ms: 20");
    let result = late.steps(5);
    assert_eq!(late.log.take(), ["b:", "b: in=1! in=2"]);
    assert_eq!(count(&result, "channel.deadline_miss_count", "e"), 1);
    assert_eq!(health(&result, HealthKind::ChannelDeadlineMiss), 1);
    assert_eq!(count(&result, "channel.message_age_ms", "e"), 10);
}

#[test]
fn a_barrier_counts_only_messages_that_are_not_too_old() {
    // Ticks are 10 ms apart.
    let stage = |lifespan: &str, reads: &str| {
        Stage::new(&format!(
            "
lanes: {{main: {{type: fixed_rate, period_ms: 10}}}}
components:
  - {{id: a, type: test.Source, config: {{epochs: [[1], [2], [3], [4], [5, 6], [7]]}}, execution: {{lane: main}}}}
  - {{id: b, type: test.Sink, {reads}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: b.in, kind: immediate, policy: {{mode: barrier, capacity: 2, overflow: drop_oldest, lifespan_ms: {lifespan}}}}}
"
        ))
    };
    for reads in [
        "trigger_policy: {type: any_input, input: in}",
        "trigger_policy: {type: any_input, input: in, max_latency_ms: 1000}",
        "trigger_policy: {type: batch, input: in, batch_size: 2}",
        "event_sources: [{type: timer, period_ms: 10}]",
    ] {
        let seen = |stage: &Stage| {
            let lines = stage.log.take().join(" ").replace("b:", "");
            lines
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        // Each is too old when the next comes, until two come together.
        let short = stage("5", reads);
        let result = short.steps(7);
        assert_eq!(seen(&short), ["in=5", "in=6"], "{reads}");
        assert_eq!(count(&result, "channel.delivery_count", "e"), 2, "{reads}");
        assert_eq!(
            count(&result, "channel.stale_drop_count", "e"),
            4,
            "{reads}"
        );
        assert_eq!(health(&result, HealthKind::ChannelStaleDrop), 4, "{reads}");
        // At 10 ms a message is not older than that, so there are always two.
        let long = stage("10", reads);
        let result = long.steps(4);
        assert_eq!(seen(&long), ["in=1", "in=2", "in=3", "in=4"], "{reads}");
        assert_eq!(
            count(&result, "channel.stale_drop_count", "e"),
            0,
            "{reads}"
        );
    }
}

#[test]
fn age_counts_from_the_publish_on_the_clock_of_the_reader() {
    let stage = Stage::new(
        "
lanes: {main: {type: fixed_rate, period_ms: 10}}
components:
  - {id: a, type: test.Source, config: {epochs: [[1]]}, execution: {lane: main}}
  - {id: b, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: a.out, to: b.in, kind: delay, policy: {deadline_ms: 5}}
",
    );
    let result = stage.steps(2);
    assert_eq!(
        stage.log.take(),
        ["b: in=1!"],
        "a period passes before it is seen"
    );
    assert_eq!(count(&result, "channel.message_age_ms", "e"), 10);
}

#[test]
fn a_queue_that_is_nearly_full_is_noticed() {
    let policy = "mode: queue, capacity: 10, overflow: reject";
    let few = pair("[[1, 2, 3, 4, 5, 6, 7]]", "immediate", policy, ANY).steps(1);
    assert_eq!(health(&few, HealthKind::BackpressureHighWatermark), 0);
    let many = pair("[[1, 2, 3, 4, 5, 6, 7, 8]]", "immediate", policy, ANY).steps(1);
    assert_eq!(health(&many, HealthKind::BackpressureHighWatermark), 1);
    assert_eq!(count(&many, "channel.max_depth", "e"), 8);
}

#[test]
fn an_edge_may_be_quiet_and_so_may_a_graph() {
    let quiet = "mode: queue, capacity: 1, overflow: reject, emit_health_events: false";
    let result = pair("[[1, 2]]", "immediate", quiet, ANY).steps(1);
    assert!(result.health.is_empty());
    assert_eq!(count(&result, "channel.reject_count", "e"), 1);
}

#[test]
fn another_reader_has_a_cursor_of_its_own_and_is_told_what_it_missed() {
    let policy = "mode: queue, capacity: 2, overflow: drop_oldest, readers: multi";
    let stage = pair("[[1, 2, 3], [4], [5, 6, 7]]", "immediate", policy, ANY);
    let run = stage.begin(RunOptions::steps(3));
    let tap = run.control().tap("e").unwrap();
    assert_eq!(
        run.control().tap("none").unwrap_err(),
        TapError::NoEdge("none".to_owned())
    );
    Runtime::simulated(1).block_on(run.run());
    // The component reads in every epoch; the tap has room for two and is not emptied.
    assert_eq!(
        stage.log.take(),
        ["b: in=2", "b: in=3", "b: in=4", "b: in=6", "b: in=7"]
    );
    let got: Vec<_> = std::iter::from_fn(|| tap.try_next()).collect();
    let values: Vec<(Option<i64>, u64)> =
        got.iter().map(|t| (t.payload.as_i64(), t.missed)).collect();
    assert_eq!(values, [(Some(2), 1), (Some(3), 0)]);
}

#[test]
fn a_tap_needs_an_edge_with_several_readers() {
    let run = pair("[]", "immediate", "", ANY).begin(RunOptions::steps(1));
    let refused = run.control().tap("e").unwrap_err();
    assert_eq!(refused, TapError::SingleReader("e".to_owned()));
}

#[test]
fn a_late_reader_of_a_latched_edge_sees_its_value_once() {
    for (mode, sees) in [("latched", vec![7]), ("latest", vec![])] {
        let stage = {
            let policy = format!("mode: {mode}, readers: multi");
            let mut stage = pair("[]", "immediate", &policy, ANY);
            let open = windlass_graph::component::Descriptor::new()
                .open_ports()
                .open_config();
            stage.registry.function("test.Source", open, |invocation| {
                if invocation.epoch() == 1 {
                    invocation.publish_to("out", 7);
                }
                Ok(())
            });
            stage
        };
        let values = Runtime::simulated(1).block_on(async {
            let options = RunOptions {
                steps: Some(100),
                ..RunOptions::default()
            };
            let running = stage.begin(options).start();
            while running.control().progress().epochs < 20 {
                windlass_runtime::task::yield_now().await;
            }
            let tap = running.control().tap("e").unwrap();
            running.await.unwrap();
            let got = std::iter::from_fn(|| tap.try_next());
            got.filter_map(|t| t.payload.as_i64()).collect::<Vec<i64>>()
        });
        assert_eq!(values, sees, "{mode}");
        assert_eq!(stage.log.take(), ["b: in=7"]);
    }
}

#[test]
fn a_state_edge_writes_the_store_and_components_read_it() {
    let stage = {
        let mut stage = pair("[[5]]", "state", "", ANY);
        let log = stage.log.clone();
        let open = windlass_graph::component::Descriptor::new()
            .open_ports()
            .open_config();
        stage
            .registry
            .function("test.Sink", open, move |invocation| {
                log.push(format!(
                    "{:?} {:?}",
                    invocation.state("b.in"),
                    invocation.state("mine")
                ));
                let epoch = invocation.epoch() as i64;
                invocation.set_state("mine", epoch);
                Ok(())
            });
        stage
    };
    let options = RunOptions {
        snapshot: true,
        ..RunOptions::steps(3)
    };
    let result = stage.run(options);
    assert_eq!(stage.log.take(), ["Some(5) None"]);
    let snapshot = result.snapshot.unwrap();
    assert_eq!(snapshot.store.get("mine"), Some(&Payload::from(2)));
    assert_eq!(snapshot.store.get("b.in"), Some(&Payload::from(5)));
    // Whole, into the next run.
    let options = RunOptions {
        restore: Some(snapshot),
        snapshot: true,
        ..RunOptions::steps(1)
    };
    let again = stage.run(options).snapshot.unwrap();
    assert_eq!(again.store.get("mine"), Some(&Payload::from(2)));
}

/// An edge that may be tapped, in a graph whose run goes on for ever.
fn tappable() -> Stage {
    pair("[]", "immediate", "readers: multi", ANY)
}

#[test]
fn who_waits_at_a_tap_is_told_however_the_run_ends() {
    let endless = || RunOptions::steps(u64::MAX);
    Runtime::simulated(1).block_on(async {
        // It never began.
        let run = tappable().begin(endless());
        let tap = run.control().tap("e").unwrap();
        drop(run);
        assert_eq!(tap.next().await, None);
        // Its future was dropped.
        let run = tappable().begin(endless());
        let (control, tap) = (run.control().clone(), run.control().tap("e").unwrap());
        let mut running = Box::pin(run.run());
        let polled = std::future::poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx).is_ready()));
        assert!(!polled.await);
        drop(running);
        assert_eq!(tap.next().await, None);
        // It is over.
        assert_eq!(control.tap("e").unwrap().next().await, None);
        // It could not begin.
        let mut failing = tappable();
        failing.registry = windlass_graph::component::Registry::new();
        let run = failing.begin(endless());
        let tap = run.control().tap("e").unwrap();
        assert_eq!(run.run().await.stop_reason, StopReason::Error);
        assert_eq!(tap.next().await, None);
    });
}

#[test]
fn a_tap_waits_for_the_next_message_in_real_time() {
    let stage = pair("[[1], [2], [3]]", "immediate", "readers: multi", ANY);
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let got = runtime.block_on(async {
        let run = stage.begin(RunOptions::steps(3));
        let tap = run.control().tap("e").unwrap();
        let running = run.start();
        let mut got = Vec::new();
        while let Some(message) = tap.next().await {
            got.push((message.payload.as_i64(), message.missed));
        }
        running.await.unwrap();
        got
    });
    let seen: i64 = got.iter().filter_map(|(value, _)| *value).count() as i64;
    let missed: u64 = got.iter().map(|(_, missed)| missed).sum();
    // The tap does not learn of those that it missed at the very end.
    assert!(seen >= 1 && seen as u64 + missed <= 3, "{got:?}");
}

//! How a run ends, and time: simulated and real.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use windlass_graph::component::Descriptor;
use windlass_graph::{RunOptions, StopReason};
use windlass_runtime::Runtime;
use windlass_sync::CancellationToken;

use super::stage::{Stage, count, traced};

fn busy() -> Stage {
    Stage::new(
        "
components:
  - {id: a, type: test.Source, config: {epochs: [[1]], repeat: true}, execution: {lane: main}}
  - {id: b, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: a.out, to: b.in, kind: immediate}
",
    )
}

/// Runs a thing once, and then only on what is sent around.
fn echo() -> Stage {
    let mut stage = Stage::new(
        "
components:
  - {id: a, type: test.Once, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e, from: a.out, to: a.in, kind: delay}
",
    );
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Once", open, |invocation| {
        let left = invocation.inputs()[0]
            .payload()
            .as_i64()
            .unwrap_or_default();
        if left > 0 {
            invocation.publish_to("out", left - 1);
        }
        Ok(())
    });
    stage
}

#[test]
fn steps_count_epochs_and_the_default_is_one() {
    assert_eq!(busy().run(RunOptions::default()).epochs, 1);
    assert_eq!(busy().run(RunOptions::steps(0)).epochs, 1);
    let result = busy().run(RunOptions::steps(7));
    assert_eq!((result.epochs, result.ticks), (7, 14));
    assert_eq!(result.stop_reason, StopReason::TickBound);
}

#[test]
fn a_run_until_idle_ends_when_nothing_runs() {
    let idle = RunOptions {
        until_idle: true,
        ..RunOptions::default()
    };
    let result = echo().run(idle.clone());
    assert_eq!(result.stop_reason, StopReason::Idle);
    assert_eq!(result.epochs, 1);
    let never = busy().run(idle);
    assert_eq!(never.stop_reason, StopReason::TickBound);
    assert_eq!(never.epochs, 1000);
}

#[test]
fn messages_that_wait_for_a_window_are_not_idle() {
    let stage = Stage::new(
        "
lanes: {main: {type: fixed_rate, period_ms: 10}}
components:
  - {id: a, type: test.Source, event_sources: [{type: timer, period_ms: 100000}], config: {epochs: [[1]]}, execution: {lane: main}}
  - {id: b, type: test.Sink, trigger_policy: {type: batch, input: in, batch_window_ms: 45}, execution: {lane: main}}
edges:
  - {id: e, from: a.out, to: b.in, kind: immediate}
",
    );
    let options = RunOptions {
        until_idle: true,
        ..RunOptions::default()
    };
    let result = stage.run(options);
    assert_eq!(stage.log.take(), ["b: in=1"]);
    assert_eq!(result.stop_reason, StopReason::Idle);
    assert_eq!(result.epochs, 7);
}

#[test]
fn a_run_ends_after_its_duration_in_real_time() {
    let options = RunOptions {
        duration: Some(Duration::from_millis(50)),
        ..RunOptions::default()
    };
    let began = Instant::now();
    let result = busy().run_really(options);
    assert_eq!(result.stop_reason, StopReason::DurationBound);
    assert!(result.epochs > 1);
    assert!((Duration::from_millis(50)..Duration::from_secs(5)).contains(&began.elapsed()));
}

#[test]
fn a_run_ends_when_it_is_asked_to() {
    let stop = CancellationToken::new();
    stop.cancel();
    let options = RunOptions {
        stop,
        ..RunOptions::steps(5)
    };
    let result = busy().run(options);
    assert_eq!(result.stop_reason, StopReason::StopRequested);
    assert_eq!(result.epochs, 0);
    assert!(result.is_ok());
}

#[test]
fn a_running_graph_can_be_stopped_and_watched_in_real_time() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let result = runtime.block_on(async {
        let running = busy().begin(RunOptions::steps(u64::MAX)).start();
        while running.control().progress().epochs < 10 {
            windlass_runtime::time::sleep(Duration::from_millis(1)).await;
        }
        running.stop();
        running.await.unwrap()
    });
    assert_eq!(result.stop_reason, StopReason::StopRequested);
    assert!(result.epochs >= 10);
}

#[test]
fn a_runtime_that_shuts_down_stops_its_graphs_first() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let running = {
        let _entered = runtime.handle().enter();
        busy().begin(RunOptions::steps(u64::MAX)).start()
    };
    runtime.block_on(async {
        while running.control().progress().epochs < 10 {
            windlass_runtime::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let mut dump = Vec::new();
    runtime.handle().debug_dump(&mut dump).unwrap();
    assert!(
        String::from_utf8(dump)
            .unwrap()
            .contains("graphs: running 1")
    );
    let report = runtime.shutdown(Duration::from_secs(5));
    assert!(report.is_clean(), "{report:?}");
    let result = Runtime::simulated(1).block_on(running).unwrap();
    assert_eq!(result.stop_reason, StopReason::StopRequested);
}

#[test]
fn lanes_have_clocks_of_their_own() {
    let stage = Stage::new(
        "
lanes:
  fast: {type: fixed_rate, hz: 1000}
  slow: {type: fixed_rate, period_ms: 5, hz: 1}
components:
  - {id: f, type: test.Sink, event_sources: [{type: timer, period_ms: 10}], execution: {lane: fast}}
  - {id: s, type: test.Sink, event_sources: [{type: timer, period_ms: 10}], execution: {lane: slow}}
edges: []
",
    );
    let result = stage.steps(21);
    // 20 ms pass on one, 100 ms on the other.
    assert_eq!(count(&result, "component.execution_count", "f"), 3);
    assert_eq!(count(&result, "component.execution_count", "s"), 11);
    assert_eq!(count(&result, "scheduler.tick_count", "slow"), 21);
    assert_eq!(traced(&result, "fixed_rate_tick_begin").len(), 42);
}

#[test]
fn a_tick_that_takes_longer_than_its_budget_is_an_overrun() {
    let mut stage = Stage::new(
        "
lanes: {main: {type: fixed_rate, period_ms: 1000, tick_budget_ms: 1}}
components:
  - {id: a, type: test.Slow, execution: {lane: main}}
edges: []
",
    );
    stage
        .registry
        .function("test.Slow", Descriptor::new(), |invocation| {
            if invocation.epoch() == 2 {
                std::thread::sleep(Duration::from_millis(3));
            }
            Ok(())
        });
    let result = stage.run_really(RunOptions::steps(3).traced());
    assert_eq!(count(&result, "scheduler.tick_overrun_count", "main"), 1);
    assert_eq!(traced(&result, "fixed_rate_overrun").len(), 1);
}

#[test]
fn a_simulated_run_is_the_same_every_time() {
    let hash = |seed| {
        let stage = busy();
        let runtime = Runtime::simulated(seed);
        let result = runtime.block_on(stage.prepared().run(RunOptions::steps(50).traced()));
        let names: Vec<String> = result
            .trace
            .events
            .iter()
            .map(|e| format!("{} {} {}", e.name, e.component_id, e.causation_id))
            .collect();
        (names, runtime.trace().expect("simulated").hash)
    };
    assert_eq!(hash(4), hash(4));
    assert_eq!(hash(4).0, hash(5).0);
}

#[test]
fn periods_of_centuries_do_not_overflow_the_clock() {
    let stage = Stage::new(
        "
lanes: {main: {type: event_loop}, rate: {type: fixed_rate, period_ms: 1000000000000}}
components:
  - {id: t, type: test.Sink, event_sources: [{type: timer, period_ms: 1000000000000}], execution: {lane: main}}
  - {id: r, type: test.Sink, event_sources: [{type: timer, period_ms: 1000000000000}], execution: {lane: rate}}
edges: []
",
    );
    let result = stage.steps(100);
    assert!(count(&result, "component.execution_count", "t") >= 18);
}

/// Two lanes on the clock, each with a component that runs at every tick, and one beside them.
fn on_the_clock(policy: &str) -> Stage {
    Stage::new(&format!(
        "
lanes:
  fast: {{type: fixed_rate, period_ms: 10, wall_clock_enabled: true, overrun_policy: {policy}}}
  slow: {{type: fixed_rate, period_ms: 25, wall_clock_enabled: true}}
  main: {{type: event_loop}}
components:
  - {{id: f, type: test.Work, execution: {{lane: fast}}}}
  - {{id: s, type: test.Sink, execution: {{lane: slow}}}}
  - {{id: m, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
  - {{id: t, type: test.Sink, event_sources: [{{type: timer, period_ms: 60}}], execution: {{lane: main}}}}
edges:
  - {{id: e, from: f.out, to: m.in, kind: immediate}}
"
    ))
}

/// With a component on the fast lane that publishes the time, in milliseconds. Its call number
/// `slow_call` takes 34 ms (0: none does). It is a call and not an epoch, because which lanes an
/// epoch runs depends on how late it is.
fn telling_the_time(policy: &str, slow_call: u64) -> Stage {
    let mut stage = on_the_clock(policy);
    let open = Descriptor::new().open_ports();
    let calls = AtomicU64::new(0);
    stage
        .registry
        .function("test.Work", open, move |invocation| {
            let now = invocation.now() as i64 / 1_000_000;
            invocation.publish_to("out", now);
            if calls.fetch_add(1, Ordering::Relaxed) + 1 == slow_call {
                std::thread::sleep(Duration::from_millis(34));
            }
            Ok(())
        });
    stage
}

#[test]
fn lanes_on_the_clock_tick_at_their_own_rates() {
    let stage = telling_the_time("drop_tick", 0);
    let runtime = Runtime::simulated(1);
    let began = runtime.block_on(async { windlass_runtime::time::Instant::now() });
    // Due at 0, 10, 20, 25, 30, 40, 50, 60, 70 and 75.
    let result = runtime.block_on(stage.prepared().run(RunOptions::steps(10).traced()));
    let took = runtime.block_on(async move { began.elapsed() });
    assert_eq!(took, Duration::from_millis(75));
    assert_eq!(count(&result, "component.execution_count", "f"), 8);
    assert_eq!(count(&result, "component.execution_count", "s"), 4);
    assert_eq!(count(&result, "component.execution_count", "t"), 2);
    assert_eq!(count(&result, "scheduler.tick_count", "fast"), 8);
    assert_eq!(count(&result, "scheduler.tick_count", "slow"), 4);
    let told: Vec<String> = stage
        .log
        .take()
        .into_iter()
        .filter(|l| l.starts_with("m:"))
        .collect();
    let expected = [0, 10, 20, 30, 40, 50, 60, 70].map(|ms| format!("m: in={ms}"));
    assert_eq!(told, expected);
    assert_eq!(count(&result, "scheduler.max_lateness_ms", "fast"), 0);
    assert_eq!(count(&result, "scheduler.tick_overrun_count", "fast"), 0);
    assert_eq!(traced(&result, "fixed_rate_tick_begin").len(), 12);
}

#[test]
fn a_timer_of_a_lane_without_a_rate_has_an_epoch_of_its_own() {
    let stage = Stage::new(
        "
lanes:
  clock: {type: fixed_rate, period_ms: 100, wall_clock_enabled: true}
  main: {type: event_loop}
components:
  - {id: c, type: test.Sink, execution: {lane: clock}}
  - {id: t, type: test.Sink, event_sources: [{type: timer, period_ms: 40}], execution: {lane: main}}
edges: []
",
    );
    // 0, 40, 80, 100, 120
    let result = stage.steps(5);
    assert_eq!(result.order, ["c", "t", "t", "t", "c", "t"]);
}

#[test]
fn a_tick_that_is_late_in_real_time_is_counted_and_its_policy_followed() {
    for (policy, least_skipped) in [("drop_tick", 3), ("skip_next", 1), ("catch_up_once", 2)] {
        let stage = telling_the_time(policy, 2);
        let result = stage.run_really(RunOptions::steps(8).traced());
        assert!(result.is_ok(), "{:?}", result.errors);
        assert!(
            count(&result, "scheduler.tick_overrun_count", "fast") >= 1,
            "{policy}"
        );
        let skipped = count(&result, "scheduler.skipped_tick_count", "fast");
        assert!(skipped >= least_skipped, "{policy}: {skipped}");
        assert!(
            !traced(&result, "fixed_rate_skipped_tick").is_empty(),
            "{policy}"
        );
        assert!(
            count(&result, "scheduler.max_lateness_ms", "slow") >= 5,
            "{policy}"
        );
    }
}

#[test]
fn a_run_on_the_clock_stops_while_it_sleeps_and_when_its_time_is_over() {
    let hourly = || {
        Stage::new(
            "
lanes: {clock: {type: fixed_rate, period_ms: 3600000, wall_clock_enabled: true}}
components:
  - {id: c, type: test.Sink, execution: {lane: clock}}
edges: []
",
        )
    };
    let began = Instant::now();
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let options = RunOptions {
        stop,
        ..RunOptions::steps(9)
    };
    let result = runtime.block_on(async move {
        let running = hourly().begin(options).start();
        while running.control().progress().epochs < 1 {
            windlass_runtime::time::sleep(Duration::from_millis(1)).await;
        }
        asked.cancel();
        running.await.unwrap()
    });
    assert_eq!(result.stop_reason, StopReason::StopRequested);
    assert_eq!(result.epochs, 1);
    let options = RunOptions {
        duration: Some(Duration::from_millis(30)),
        ..RunOptions::steps(9)
    };
    let result = hourly().run_really(options);
    assert_eq!(result.stop_reason, StopReason::DurationBound);
    assert_eq!(result.epochs, 1);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_waits_for_another_input_does_not_wait_for_time() {
    let graph = |lane: &str| {
        Stage::new(&format!(
            "
lanes: {{main: {{type: event_loop}}, tick: {{{lane}}}}}
components:
  - {{id: a, type: test.Source, event_sources: [{{type: timer, period_ms: 3600000}}], config: {{epochs: [[1, 2, 3]]}}, execution: {{lane: tick}}}}
  - {{id: b, type: test.Source, event_sources: [{{type: timer, period_ms: 3600000}}], config: {{epochs: [[9]]}}, execution: {{lane: tick}}}}
  - {{id: c, type: test.Sink, trigger_policy: {{type: all_inputs, inputs: [x, y], min_interval_ms: 5}}, execution: {{lane: main}}}}
edges:
  - {{id: ax, from: a.out, to: c.x, kind: immediate, policy: {{mode: queue, capacity: 8}}}}
  - {{id: by, from: b.out, to: c.y, kind: immediate}}
"
        ))
    };
    let options = || RunOptions {
        until_idle: true,
        ..RunOptions::default()
    };
    let simulated = graph("type: fixed_rate, period_ms: 1");
    let result = simulated.run(options());
    assert_eq!(simulated.log.take(), ["c: x=1 y=9"]);
    assert_eq!((result.stop_reason, result.epochs), (StopReason::Idle, 2));
    // On the clock there is no epoch before the next tick.
    let real = graph("type: fixed_rate, period_ms: 50, wall_clock_enabled: true");
    let options = RunOptions {
        duration: Some(Duration::from_millis(200)),
        ..RunOptions::default()
    };
    let result = real.run(options);
    assert!(result.epochs <= 5, "{} epochs", result.epochs);
}

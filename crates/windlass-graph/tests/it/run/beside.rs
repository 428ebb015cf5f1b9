//! Loops beside the epochs: what concerns their members while they are away.

use std::collections::HashSet;

use windlass_graph::run::{ConfigTransaction, TraceName};
use windlass_graph::{RunOptions, RunResult};
use windlass_runtime::Runtime;

use super::stage::{Stage, count};

const EPOCHS: u64 = 8;

/// A source that publishes in every epoch, and a loop of `a` and `b`; `inner` is an edge from
/// `b.out` to `a.late`.
pub(crate) fn stage(kind: &str, inner: &str) -> Stage {
    Stage::new(&format!(
        "
components:
  - {{id: s, type: test.Source, config: {{epochs: [[1]], repeat: 1}}, execution: {{lane: main}}}}
  - {{id: a, type: test.Pass, trigger_policy: {{type: any_input, inputs: [in, back, late]}}, execution: {{lane: main}}}}
  - {{id: b, type: test.Pass, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: start, from: s.out, to: a.in, kind: immediate}}
  - {{id: there, from: a.out, to: b.in, kind: immediate, policy: {{readers: multi}}}}
  - {{id: back, from: b.none, to: a.back, kind: immediate}}
  - {{id: late, from: b.out, to: a.late, {inner}}}
composite_loops:
  - {{id: loop, components: [a, b], loop_policy: {{type: {kind}}}}}
"
    ))
}

#[test]
fn what_is_deferred_between_members_arrives_as_in_any_loop() {
    let edges = [
        "kind: delay",
        "kind: state",
        "kind: async",
        "kind: immediate, policy: {mode: previous_tick}",
        "kind: delay, policy: {mode: previous_tick}",
    ];
    for inner in edges {
        let counts = |result: &RunResult| {
            ["a", "b"]
                .map(|id| count(result, "component.execution_count", id))
                .into_iter()
                .chain([count(result, "channel.delivery_count", "late")])
                .collect::<Vec<u64>>()
        };
        let within = counts(&stage("fixed_point", inner).steps(EPOCHS));
        let beside = counts(&stage("async_task", inner).steps(EPOCHS));
        assert_eq!(within, beside, "{inner}");
        assert!(beside[2] > 0, "{inner}");
    }
}

#[test]
fn timers_of_members_go_on() {
    let stage = Stage::new(
        "
components:
  - {id: m, type: test.Pass, event_sources: [{type: timer, period_ms: 5}], execution: {lane: main}}
edges:
  - {id: own, from: m.out, to: m.own, kind: immediate}
composite_loops:
  - {id: loop, components: [m], loop_policy: {type: async_task}}
",
    );
    let result = stage.steps(EPOCHS);
    assert_eq!(count(&result, "component.execution_count", "m"), EPOCHS);
}

#[test]
fn an_edge_between_members_can_be_tapped() {
    let stage = stage("async_task", "kind: delay");
    let run = stage.begin(RunOptions::steps(EPOCHS));
    let tap = run.control().tap("there").unwrap();
    let result = Runtime::simulated(1).block_on(run.run());
    assert!(result.is_ok(), "{:?}", result.errors);
    let tapped = tap.try_next().expect("it saw something");
    assert_eq!(tapped.payload.as_i64(), Some(1));
}

#[test]
fn members_can_be_reconfigured_at_any_time() {
    let stage = stage("async_task", "kind: delay");
    let result = Runtime::simulated(1).block_on(async {
        let running = stage.begin(RunOptions::steps(200)).start();
        while running.control().progress().epochs < 20 {
            windlass_runtime::task::yield_now().await;
        }
        let change = ConfigTransaction::new().set("a", Default::default());
        running.control().reconfigure(change).unwrap();
        running.await.unwrap()
    });
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(result.metrics.sum("runtime.config.commit_count"), 1.0);
}

#[test]
fn a_message_that_a_loop_has_not_taken_keeps_its_place() {
    let stage = Stage::new(
        "
components:
  - {id: s, type: test.Source, config: {epochs: [[1], [2], [3], [4], [5], [6], [7], [8], [9]]}, execution: {lane: main}}
  - {id: m, type: test.Sink, trigger_policy: {type: any_input, inputs: [in, own]}, execution: {lane: main}}
edges:
  - {id: start, from: s.out, to: m.in, kind: immediate, policy: {mode: barrier, capacity: 3, overflow: drop_oldest, readers: multi}}
  - {id: own, from: m.out, to: m.own, kind: immediate}
composite_loops:
  - {id: loop, components: [m], loop_policy: {type: async_task}}
",
    );
    let run = stage.begin(RunOptions::steps(12));
    // The tap is not emptied: what it has not got stays in the channel.
    let _slow = run.control().tap("start").unwrap();
    Runtime::simulated(1).block_on(run.run());
    let all: Vec<String> = (1..=9).map(|number| format!("m: in={number}")).collect();
    assert_eq!(stage.log.take(), all);
}

#[test]
fn invocations_of_two_loops_have_numbers_of_their_own() {
    let stage = Stage::new(
        "
components:
  - {id: m, type: test.Pass, execution: {lane: main}}
  - {id: n, type: test.Pass, execution: {lane: main}}
edges:
  - {id: mm, from: m.out, to: m.own, kind: immediate}
  - {id: nn, from: n.out, to: n.own, kind: immediate}
composite_loops:
  - {id: one, components: [m], loop_policy: {type: async_task}}
  - {id: two, components: [n], loop_policy: {type: async_task}}
",
    );
    let result = stage.steps(EPOCHS);
    let events = result.trace.events.iter();
    let executed = events.filter(|event| event.name == TraceName::ComponentExecute);
    let numbers: Vec<u64> = executed.map(|event| event.transaction_id).collect();
    let different: HashSet<&u64> = numbers.iter().collect();
    assert_eq!(numbers.len(), 2 * EPOCHS as usize);
    assert_eq!(different.len(), numbers.len());
}

#[test]
fn a_trace_that_keeps_nothing_counts_the_same_events() {
    for kind in ["async_task", "fixed_point"] {
        let counted = |capacity: usize| {
            let options = RunOptions {
                trace_capacity: capacity,
                ..RunOptions::steps(EPOCHS).traced()
            };
            let result = stage(kind, "kind: state").run(options);
            assert!(result.trace.events.len() <= capacity);
            result.metrics.sum("runtime.trace.event_count")
        };
        assert_eq!(counted(0), counted(1 << 16), "{kind}");
    }
}

#[test]
fn a_full_trace_keeps_its_last_event_as_it_is() {
    let options = RunOptions {
        trace_capacity: 1,
        ..RunOptions::steps(EPOCHS).traced()
    };
    let result = stage("fixed_point", "kind: state").run(options);
    let [only] = &result.trace.events[..] else {
        panic!("{:?}", result.trace.events)
    };
    assert!(only.attributes.is_empty(), "{only:?}");
}

#[test]
fn what_a_loop_leaves_unread_stays_within_the_capacity_of_its_edge() {
    let mut stage = Stage::new(
        "
components:
  - {id: s, type: test.Source, config: {epochs: [[1, 2]], repeat: 1}, execution: {lane: main}}
  - {id: m, type: test.Fail, trigger_policy: {type: any_input, inputs: [in, own]}, execution: {lane: main, on_error: isolate}}
edges:
  - {id: e, from: s.out, to: m.in, kind: immediate, policy: {mode: queue, capacity: 3}}
  - {id: own, from: m.out, to: m.own, kind: immediate}
composite_loops:
  - {id: loop, components: [m], loop_policy: {type: async_task}}
",
    );
    let open = windlass_graph::component::Descriptor::new().open_ports();
    stage.registry.function("test.Fail", open, |_| {
        Err(windlass_graph::component::Failure::new("isolated at once"))
    });
    let result = stage.steps(50);
    let count = |name: &str| count(&result, &format!("channel.{name}"), "e");
    assert!(count("waiting") <= 3, "{} wait", count("waiting"));
    let accounted = count("delivery_count") + count("lost_count") + count("waiting");
    assert_eq!(count("publish_count"), accounted);
}

/// A loop that takes a second, beside a lane of 100 Hz.
const SLOW: &str = "
lanes: {main: {type: event_loop}, clock: {type: fixed_rate, period_ms: 10, wall_clock_enabled: true}, pool: {type: thread_pool}}
components:
  - {id: s, type: test.Source, config: {epochs: [[1]], repeat: 1}, execution: {lane: clock}}
  - {id: m, type: test.Slow, trigger_policy: {type: any_input, inputs: [in, back]}, execution: {lane: pool}}
  - {id: o, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: in, from: s.out, to: m.in, kind: immediate}
  - {id: back, from: m.none, to: m.back, kind: immediate}
  - {id: out, from: m.out, to: o.in, kind: immediate}
composite_loops:
  - {id: loop, components: [m], loop_policy: {type: async_task}}
";

pub(crate) fn slow_stage(takes: std::time::Duration) -> Stage {
    let mut stage = Stage::new(SLOW);
    let open = windlass_graph::component::Descriptor::new().open_ports();
    stage
        .registry
        .function("test.Slow", open, move |invocation| {
            if windlass_core::sync::with_world(|world| world.is_none()) {
                std::thread::sleep(takes);
            }
            let epoch = invocation.epoch() as i64;
            invocation.publish_to("out", epoch);
            Ok(())
        });
    stage
}

#[test]
fn a_loop_that_takes_long_in_real_time_keeps_nobody_waiting_in_real_time() {
    let stage = slow_stage(std::time::Duration::from_millis(150));
    let result = stage.run_really(RunOptions {
        duration: Some(std::time::Duration::from_millis(500)),
        ..RunOptions::default()
    });
    assert!(result.is_ok(), "{:?}", result.errors);
    let ticks = count(&result, "component.execution_count", "s");
    let loops = count(&result, "component.execution_count", "m");
    // 50 ticks, and one run of the loop after another.
    assert!(ticks >= 25, "{ticks} ticks");
    assert!((1..=4).contains(&loops), "{loops} runs of the loop");
    let seen = stage.log.take().len() as u64;
    assert!(seen >= 1 && seen <= loops, "{seen} of {loops}");
}

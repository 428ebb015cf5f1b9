//! Composite loops.

use std::time::Duration;

use windlass_graph::component::{Descriptor, Failure};
use windlass_graph::{RunOptions, StopReason};
use windlass_sync::CancellationToken;

use super::stage::{Stage, count, traced};

/// A source, a loop of `ping` and `pong` that count a number down by one each, and a sink for what
/// `pong` says.
fn counting(loop_policy: &str, start: i64) -> Stage {
    counting_with("", loop_policy, start)
}

/// As `counting`, with more to say about the execution of the members.
fn counting_with(execution: &str, loop_policy: &str, start: i64) -> Stage {
    let mut stage = Stage::new(&format!(
        "
components:
  - {{id: a, type: test.Source, config: {{epochs: [[{start}]]}}, execution: {{lane: main}}}}
  - {{id: ping, type: test.Down, trigger_policy: {{type: any_input, inputs: [in, back]}}, execution: {{lane: main{execution}}}}}
  - {{id: pong, type: test.Down, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main{execution}}}}}
  - {{id: z, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: start, from: a.out, to: ping.in, kind: immediate}}
  - {{id: there, from: ping.out, to: pong.in, kind: immediate}}
  - {{id: back, from: pong.out, to: ping.back, kind: immediate}}
  - {{id: result, from: pong.said, to: z.in, kind: immediate, policy: {{mode: queue, capacity: 99}}}}
composite_loops:
  - {{id: loop, components: [ping, pong], loop_policy: {{{loop_policy}}}}}
"
    ));
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Down", open, |invocation| {
        let number = invocation.inputs()[0]
            .payload()
            .as_i64()
            .unwrap_or_default();
        if number == -7 {
            return Err(Failure::new("seven below"));
        }
        invocation.report_loop_convergence(number == 1, Some(number as f64), "counting");
        invocation.publish_to("said", number);
        invocation.publish_to("out", (number - 1).max(-7));
        Ok(())
    });
    stage
}

/// Why the loop stopped, as its metrics say.
fn reason(result: &windlass_graph::RunResult) -> String {
    let samples = result.metrics.samples.iter();
    let mut tags = samples.flat_map(|sample| &sample.tags);
    let reason = tags.find(|(key, _)| *key == "loop_stop_reason");
    reason.map(|(_, value)| value.clone()).unwrap_or_default()
}

#[test]
fn a_fixed_point_goes_round_until_its_bound_and_commits() {
    let stage = counting("type: fixed_point, max_iterations: 3", 100);
    let result = stage.steps(1);
    assert_eq!(stage.log.take(), ["z: in=99", "z: in=97", "z: in=95"]);
    assert_eq!(reason(&result), "max_iterations");
    assert_eq!(count(&result, "loop.iterations", "loop"), 3);
    assert_eq!(count(&result, "loop.max_iterations_hit", "loop"), 1);
    assert_eq!(traced(&result, "loop_iteration_begin").len(), 3);
    assert_eq!(traced(&result, "loop_max_iterations_hit").len(), 1);
}

#[test]
fn what_leaves_a_loop_is_seen_when_it_ends() {
    let stage = counting("type: fixed_point, max_iterations: 2", 100);
    let order = stage.steps(1).order;
    assert_eq!(order, ["a", "ping", "pong", "ping", "pong", "z", "z"]);
}

#[test]
fn a_report_of_a_component_ends_it() {
    let policy = "type: solver_iteration, max_iterations: 50, partial_success: discard_outputs";
    let stage = counting(policy, 6);
    let result = stage.steps(1);
    assert_eq!(reason(&result), "component_report");
    assert_eq!(stage.log.take(), ["z: in=5", "z: in=3", "z: in=1"]);
    assert_eq!(count(&result, "loop.converged", "loop"), 1);
}

#[test]
fn a_small_residual_ends_it() {
    let policy = "type: solver_iteration, max_iterations: 50, residual_threshold: 7";
    let stage = counting(policy, 10);
    let result = stage.steps(1);
    assert_eq!(reason(&result), "residual_threshold");
    assert_eq!(stage.log.take(), ["z: in=9", "z: in=7"]);
    assert_eq!(count(&result, "loop.residual", "loop"), 7);
}

#[test]
fn one_pass_is_enough_for_those_who_say_so() {
    for convergence in ["single_pass", "after_first_iteration", "always"] {
        let policy = format!("type: fixed_point, max_iterations: 9, convergence: {convergence}");
        let stage = counting(&policy, 100);
        let result = stage.steps(1);
        assert_eq!(reason(&result), convergence);
        assert_eq!(stage.log.take(), ["z: in=99"]);
    }
}

#[test]
fn a_pass_that_says_what_the_one_before_said_is_stable() {
    let mut stage = counting(
        "type: fixed_point, max_iterations: 50, convergence: stable_state",
        3,
    );
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Down", open, |invocation| {
        let number = invocation.inputs()[0]
            .payload()
            .as_i64()
            .unwrap_or_default();
        let next = (number - 1).max(0);
        invocation.publish_to("said", next);
        invocation.publish_to("out", next);
        Ok(())
    });
    let result = stage.steps(1);
    assert_eq!(reason(&result), "stable_state");
    // 2 1 | 0 0 | 0 0
    assert_eq!(count(&result, "loop.iterations", "loop"), 3);
}

#[test]
fn a_solver_that_does_not_converge_does_what_its_policy_says() {
    let solver = "type: solver_iteration, max_iterations: 2";
    let discards = counting(solver, 100);
    let result = discards.steps(1);
    assert!(discards.log.take().is_empty());
    assert_eq!(count(&result, "loop.output_discarded", "loop"), 2);
    assert_eq!(
        result
            .metrics
            .sum("runtime.publication.composite_discarded"),
        2.0
    );
    assert_eq!(traced(&result, "loop_output_discarded").len(), 1);

    let commits = counting(&format!("{solver}, partial_success: commit_outputs"), 100);
    assert_eq!(commits.seen(1), ["z: in=99", "z: in=97"]);

    let fails = counting(&format!("{solver}, partial_success: fail_run"), 100);
    let result = fails.run(RunOptions::steps(1));
    assert_eq!(result.stop_reason, StopReason::Error);
    assert!(result.errors[0].message.contains("did not converge"));
    assert!(fails.log.take().is_empty());
}

#[test]
fn a_transaction_is_one_pass_and_all_or_nothing() {
    let stage = counting("type: transaction, max_iterations: 9", 100);
    assert_eq!(stage.seen(1), ["z: in=99"]);
    let mut failing = counting("type: transaction", 100);
    let open = Descriptor::new().open_ports();
    failing.registry.function("test.Down", open, |invocation| {
        invocation.publish_to("out", 1);
        invocation.publish_to("said", 1);
        match invocation.component() {
            "pong" => Err(Failure::new("on purpose")),
            _ => Ok(()),
        }
    });
    let result = failing.run(RunOptions::steps(1).traced());
    assert_eq!(result.stop_reason, StopReason::Error);
    assert!(failing.log.take().is_empty());
    assert_eq!(reason(&result), "component_error");
    assert_eq!(count(&result, "loop.error", "loop"), 1);
    assert_eq!(traced(&result, "loop_error").len(), 1);
}

#[test]
fn an_error_that_is_put_up_with_still_discards_what_the_loop_said() {
    let policy = "type: fixed_point, max_iterations: 20";
    let stage = counting_with(", on_error: continue", policy, -4);
    let result = stage.steps(2);
    assert!(stage.log.take().is_empty());
    assert_eq!(reason(&result), "component_error");
    assert_eq!(result.stop_reason, StopReason::TickBound);
}

#[test]
fn a_loop_looks_at_its_budget_after_each_pass() {
    let mut stage = counting(
        "type: fixed_point, max_iterations: 1000, budget_ms: 1",
        5000,
    );
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Down", open, |invocation| {
        let number = invocation.inputs()[0]
            .payload()
            .as_i64()
            .unwrap_or_default();
        invocation.publish_to("out", number - 1);
        std::thread::sleep(Duration::from_millis(2));
        Ok(())
    });
    let result = stage.run_really(RunOptions::steps(1));
    assert_eq!(reason(&result), "budget_overrun");
    assert_eq!(count(&result, "loop.iterations", "loop"), 1);
}

#[test]
fn a_cancelled_loop_stops_between_two_passes() {
    let stop = CancellationToken::new();
    let mut stage = counting("type: fixed_point, max_iterations: 1000", 5000);
    let open = Descriptor::new().open_ports();
    let asked = stop.clone();
    stage
        .registry
        .function("test.Down", open, move |invocation| {
            let number = invocation.inputs()[0]
                .payload()
                .as_i64()
                .unwrap_or_default();
            invocation.publish_to("out", number - 1);
            if invocation.iteration() == 4 {
                asked.cancel();
            }
            Ok(())
        });
    let mut options = RunOptions::steps(9).traced();
    options.stop = stop;
    let result = stage.run(options);
    assert_eq!(reason(&result), "cancelled");
    assert_eq!(count(&result, "loop.iterations", "loop"), 5);
    assert_eq!(result.stop_reason, StopReason::StopRequested);
    assert_eq!(traced(&result, "loop_cancellation").len(), 2);
}

#[test]
fn a_coalesced_loop_takes_the_newest_of_what_has_come() {
    let graph = |kind: &str| {
        Stage::new(&format!(
            "
components:
  - {{id: a, type: test.Source, config: {{epochs: [[1, 2, 3]]}}, execution: {{lane: main}}}}
  - {{id: m, type: test.Sink, trigger_policy: {{type: any_input, inputs: [in, own]}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: m.in, kind: immediate, policy: {{mode: queue, capacity: 9}}}}
  - {{id: own, from: m.out, to: m.own, kind: immediate}}
composite_loops:
  - {{id: loop, components: [m], loop_policy: {{type: {kind}}}}}
"
        ))
    };
    assert_eq!(
        graph("fixed_point").seen(1),
        ["m: in=1", "m: in=2", "m: in=3"]
    );
    assert_eq!(graph("coalesced_event").seen(1), ["m: in=3"]);
}

#[test]
fn a_loop_waits_between_its_runs() {
    let graph = |drop_policy: &str| {
        Stage::new(&format!(
            "
lanes: {{main: {{type: fixed_rate, period_ms: 10}}}}
components:
  - {{id: a, type: test.Source, config: {{epochs: [[1], [2], [3], [4]]}}, execution: {{lane: main}}}}
  - {{id: m, type: test.Sink, trigger_policy: {{type: any_input, inputs: [in, own]}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: m.in, kind: immediate, policy: {{mode: queue, capacity: 9}}}}
  - {{id: own, from: m.out, to: m.own, kind: immediate}}
composite_loops:
  - {{id: loop, components: [m], loop_policy: {{type: coalesced_event, min_interval_ms: 25{drop_policy}}}}}
"
        ))
    };
    // It runs at 0 and at 30, with the newest.
    assert_eq!(graph("").seen(4), ["m: in=1", "m: in=4"]);
    let drops = graph(", drop_policy: reject");
    let result = drops.steps(4);
    assert_eq!(drops.log.take(), ["m: in=1", "m: in=4"]);
    assert_eq!(count(&result, "channel.drop_count", "e"), 2);
}

#[test]
fn a_loop_beside_the_epochs_commits_in_the_first_one_after_it_ends() {
    for really in [false, true] {
        let stage = counting("type: async_task, max_iterations: 2, max_inflight: 1", 100);
        let result = match really {
            true => stage.run_really(RunOptions::steps(2).traced()),
            false => stage.steps(2),
        };
        assert!(result.is_ok(), "{:?}", result.errors);
        assert_eq!(stage.log.take(), ["z: in=99", "z: in=97"]);
        // What is left between the members makes it go on in the second epoch.
        let order = ["a", "ping", "pong", "ping", "pong", "a", "z", "z"];
        assert_eq!(result.order[..8], order);
        assert_eq!(count(&result, "loop.iterations", "loop"), 4);
        assert_eq!(count(&result, "component.execution_count", "ping"), 4);
        assert_eq!(count(&result, "channel.delivery_count", "start"), 1);
    }
}

#[test]
fn a_loop_beside_the_epochs_that_nobody_waits_for_is_counted() {
    let stage = counting("type: async_task, max_iterations: 2", 100);
    let result = stage.steps(1);
    assert!(stage.log.take().is_empty());
    assert_eq!(
        result
            .metrics
            .sum("runtime.publication.composite_discarded"),
        2.0
    );
    assert_eq!(count(&result, "component.execution_count", "pong"), 2);
}

#[test]
fn a_loop_that_has_nothing_to_do_does_not_run() {
    let stage = counting("type: fixed_point, max_iterations: 3", 100);
    let result = stage.steps(5);
    assert_eq!(count(&result, "loop.iterations", "loop"), 15);
    let quiet = Stage::new(
        "
components:
  - {id: m, type: test.Sink, trigger_policy: {type: any_input, inputs: [own]}, execution: {lane: main}}
edges:
  - {id: own, from: m.out, to: m.own, kind: immediate}
composite_loops:
  - {id: loop, components: [m], loop_policy: {type: fixed_point}}
",
    );
    let result = quiet.steps(5);
    assert_eq!(count(&result, "loop.iterations", "loop"), 0);
    assert!(traced(&result, "loop").is_empty());
}

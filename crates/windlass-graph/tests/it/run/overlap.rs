//! Regions that overlap: faster, and otherwise the same.

use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use windlass_graph::component::{Descriptor, Failure, Registry};
use windlass_graph::model::{BoundaryRole, Graph, Lane, LaneKind, OnError};
use windlass_graph::{Prepared, RunOptions, RunResult, StopReason};
use windlass_runtime::Runtime;

use super::conservation::{Dice, random_graph};
use super::stage::{Stage, count};

/// A random graph most of whose components are on threads, and some of whose components fail.
pub(crate) fn threaded_graph(seed: u64) -> Graph {
    let mut graph = random_graph(seed);
    let mut dice = Dice(seed * 0x51_7CC1 + 7);
    graph.lanes.push(Lane::new("own", LaneKind::IsolatedThread));
    let mut each = Lane::new("each", LaneKind::IsolatedThread);
    each.per_component = true;
    graph.lanes.push(each);
    for component in &mut graph.components {
        let lane = dice.pick(&["main", "pool", "pool", "own", "each"]);
        component.execution.lane = lane.to_owned();
        component.execution.on_error = dice.pick(&[OnError::Continue, OnError::Isolate]);
        if dice.roll(5) == 0 {
            component.boundary.role = Some(BoundaryRole::Output);
        }
    }
    graph
}

/// What the components were called with, each for itself.
pub(crate) type Calls = Arc<Mutex<std::collections::BTreeMap<String, Vec<String>>>>;

pub(crate) fn registry(calls: &Calls, seed: u64) -> Registry {
    let mut registry = Registry::new();
    let open = || Descriptor::new().open_ports();
    for (name, is_source) in [("test.Source", true), ("test.Pass", false)] {
        let calls = calls.clone();
        registry.function(name, open(), move |invocation| {
            let inputs: Vec<String> = invocation
                .inputs()
                .iter()
                .map(|m| format!("{:?} {:?} {:?}", m.id(), m.payload(), m.transaction()))
                .collect();
            let number = invocation.transaction();
            let mut calls = calls.lock().unwrap();
            let mine = calls.entry(invocation.component().to_owned()).or_default();
            mine.push(format!("{number}: {inputs:?}"));
            // The invocations of a reentrant component come in any order.
            mine.sort();
            drop(calls);
            if is_source {
                for value in 0..invocation.epoch() as i64 % 4 {
                    invocation.publish_to("out", value);
                }
            } else {
                invocation.publish_to("out", number as i64);
            }
            match (number * 31 + seed) % 41 {
                0 => Err(Failure::new("on purpose")),
                _ => Ok(()),
            }
        });
    }
    registry
}

fn run(runtime: &Runtime, seed: u64, overlap: bool) -> (RunResult, String) {
    let calls = Calls::default();
    let prepared = Prepared::new(threaded_graph(seed), registry(&calls, seed)).unwrap();
    let options = RunOptions {
        overlap,
        ..RunOptions::steps(12).traced()
    };
    let result = runtime.block_on(prepared.run(options));
    assert!(result.is_ok(), "seed {seed}: {:?}", result.errors);
    let calls = format!("{:#?}", calls.lock().unwrap());
    (result, calls)
}

/// Everything that a run says but worker ids, durations and maxima.
fn told(result: &RunResult) -> String {
    const DIFFERS: [&str; 9] = [
        "duration",
        "jitter",
        "active_count",
        "in_flight_count",
        "queue_depth",
        "starvation_guard",
        "budget",
        "lateness",
        "max_in_flight",
    ];
    let mut text = format!("{:?} {:?}\n", result.stop_reason, result.order);
    for sample in &result.metrics.samples {
        let differs = DIFFERS.iter().any(|part| sample.name.contains(part));
        if !differs || sample.name.starts_with("runtime.async") {
            text.push_str(&format!("{sample:?}\n"));
        }
    }
    for event in &result.trace.events {
        let causes = (&event.correlation_id, &event.causation_id);
        text.push_str(&format!(
            "{} {} {} {} {} {causes:?}\n",
            event.name, event.component_id, event.channel_id, event.epoch_id, event.transaction_id,
        ));
    }
    let errors = result.errors.iter().map(|e| format!("{e}\n"));
    text.extend(errors);
    text.push_str(&format!("{:?}", result.health));
    text
}

#[test]
fn a_run_with_overlap_says_what_one_without_says() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    for seed in 0..60 {
        let (one_by_one, called_so) = run(&runtime, seed, false);
        let (overlapping, called) = run(&runtime, seed, true);
        let (left, right) = (told(&one_by_one), told(&overlapping));
        for (left, right) in left.lines().zip(right.lines()) {
            assert_eq!(left, right, "seed {seed}");
        }
        assert_eq!(left.len(), right.len(), "seed {seed}");
        assert_eq!(called_so, called, "seed {seed}");
    }
}

fn two_branches(lanes: &str) -> Stage {
    Stage::new(&format!(
        "
lanes: {{main: {{type: event_loop}}, {lanes}}}
components:
  - {{id: in, type: test.Source, config: {{epochs: [[1]], repeat: true}}, execution: {{lane: main}}}}
  - {{id: a, type: test.Meet, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: one}}}}
  - {{id: b, type: test.Meet, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: two}}}}
  - {{id: out, type: test.Sink, trigger_policy: {{type: any_input, inputs: [a, b]}}, execution: {{lane: main}}}}
edges:
  - {{id: ia, from: in.out, to: a.in, kind: immediate}}
  - {{id: ib, from: in.out, to: b.in, kind: immediate}}
  - {{id: ao, from: a.out, to: out.a, kind: immediate}}
  - {{id: bo, from: b.out, to: out.b, kind: immediate}}
"
    ))
}

#[test]
fn regions_without_a_path_between_them_overlap_and_are_committed_in_order() {
    for lanes in [
        "one: {type: thread_pool, max_threads: 2}, two: {type: thread_pool}",
        "one: {type: thread_pool}, two: {type: event_loop}",
    ] {
        let mut stage = two_branches(lanes);
        // Each waits for the other: they get on only if both run at once.
        let both = Arc::new(Barrier::new(2));
        let open = Descriptor::new().open_ports();
        stage
            .registry
            .function("test.Meet", open, move |invocation| {
                both.wait();
                if invocation.component() == "a" {
                    // The first in order is the last to end.
                    std::thread::sleep(Duration::from_millis(5));
                }
                let name = invocation.component();
                invocation.publish_to("out", name);
                Ok(())
            });
        let result = stage.run_really(RunOptions::steps(5));
        assert!(result.is_ok(), "{:?}", result.errors);
        let once = ["out: a=\"a\"", "out: b=\"b\""];
        assert_eq!(stage.log.take(), once.repeat(5), "{lanes}");
        assert_eq!(result.order[..4], ["in", "a", "b", "out"]);
    }
}

#[test]
fn isolated_threads_overlap_and_each_component_can_have_its_own() {
    let version = |text: &str| text.replace("schema_version: 1", "schema_version: 2");
    for (lanes, threads) in [
        (
            "one: {type: isolated_thread}, two: {type: isolated_thread}",
            1,
        ),
        (
            "one: {type: isolated_thread, per_component: true}, two: {type: event_loop}",
            2,
        ),
    ] {
        let text = two_branches(lanes);
        let text = version(text.text());
        let text = match threads {
            2 => text.replace("{lane: two}", "{lane: one}"),
            _ => text,
        };
        let mut stage = Stage::file(&text);
        let both = Arc::new(Barrier::new(2));
        let names = Arc::new(Mutex::new(Vec::new()));
        let seen = names.clone();
        let open = Descriptor::new().open_ports();
        stage
            .registry
            .function("test.Meet", open, move |invocation| {
                both.wait();
                let thread = std::thread::current().name().unwrap_or("").to_owned();
                seen.lock().unwrap().push(thread);
                let name = invocation.component();
                invocation.publish_to("out", name);
                Ok(())
            });
        let result = stage.run_really(RunOptions::steps(3));
        assert!(result.is_ok(), "{:?}", result.errors);
        let mut names = names.lock().unwrap().clone();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.iter().all(|name| name.contains("lane-")), "{names:?}");
        assert_eq!(count(&result, "scheduler.worker_count", "one"), threads);
    }
}

#[test]
fn nothing_after_a_region_that_ended_the_run_is_committed() {
    let mut stage = two_branches("one: {type: thread_pool}, two: {type: thread_pool}");
    let began = Arc::new(Barrier::new(2));
    let open = Descriptor::new().open_ports();
    stage
        .registry
        .function("test.Meet", open, move |invocation| {
            began.wait();
            let name = invocation.component();
            invocation.publish_to("out", name);
            match name {
                "a" => Err(Failure::new("on purpose")),
                _ => Ok(()),
            }
        });
    let result = stage.run_really(RunOptions::steps(2));
    assert_eq!(result.stop_reason, StopReason::Error);
    assert_eq!(result.order, ["in", "a"]);
    assert_eq!(count(&result, "channel.publish_count", "bo"), 0);
    assert!(stage.log.take().is_empty());
    // It overlapped, and has come back to be deactivated.
    assert_eq!(
        result.metrics.sum("runtime.lifecycle.deactivated_count"),
        4.0
    );
}

#[test]
fn output_boundaries_overlap_with_nothing() {
    let mut stage = Stage::new(
        "
lanes: {main: {type: event_loop}, pool: {type: thread_pool, max_threads: 4}}
components:
  - {id: in, type: test.Source, config: {epochs: [[1]], repeat: true}, execution: {lane: main}}
  - {id: a, type: test.Alone, boundary: {role: output}, trigger_policy: {type: any_input, input: in}, execution: {lane: pool}}
  - {id: b, type: test.Alone, boundary: {role: output}, trigger_policy: {type: any_input, input: in}, execution: {lane: pool}}
  - {id: c, type: test.Alone, trigger_policy: {type: any_input, input: in}, execution: {lane: pool}}
edges:
  - {id: ia, from: in.out, to: a.in, kind: immediate}
  - {id: ib, from: in.out, to: b.in, kind: immediate}
  - {id: ic, from: in.out, to: c.in, kind: immediate}
",
    );
    let busy = Arc::new(Mutex::new(()));
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Alone", open, move |_| {
        let _alone = busy
            .try_lock()
            .map_err(|_| Failure::new("somebody is here"))?;
        std::thread::sleep(Duration::from_millis(2));
        Ok(())
    });
    let result = stage.run_really(RunOptions::steps(10));
    assert!(result.is_ok(), "{:?}", result.errors);
}

#[test]
fn a_pool_takes_what_waits_by_priority_and_lets_nobody_starve() {
    let mut text = "
lanes: {main: {type: event_loop}, pool: {type: thread_pool}}
components:
  - {id: in, type: test.Source, config: {epochs: [[1]], repeat: true}, execution: {lane: main}}
"
    .to_owned();
    let mut edges = "edges:\n".to_owned();
    for number in 0..20 {
        let priority = if number == 0 { "background" } else { "high" };
        let first = if number == 10 { "first" } else { "high" };
        let id = format!("{}{number:02}", if number == 10 { first } else { priority });
        text.push_str(&format!(
            "  - {{id: {id}, type: test.Note, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: pool, priority: {priority}}}}}\n"
        ));
        edges.push_str(&format!(
            "  - {{id: e{number}, from: in.out, to: {id}.in, kind: immediate}}\n"
        ));
    }
    let mut stage = Stage::new(&format!("{text}{edges}"));
    let log = stage.log.clone();
    let open = Descriptor::new().open_ports();
    stage
        .registry
        .function("test.Note", open, move |invocation| {
            log.push(invocation.component());
            // Long enough for all others to be in line.
            std::thread::sleep(Duration::from_millis(3));
            Ok(())
        });
    let began = Instant::now();
    let result = stage.run_really(RunOptions::steps(1));
    assert!(result.is_ok(), "{:?}", result.errors);
    let called = stage.log.take();
    let place = called
        .iter()
        .position(|name| name.starts_with("background"));
    assert_eq!(called.len(), 20);
    // It waits for those of high priority, but not for all of them.
    assert!((1..19).contains(&place.unwrap()), "{called:?}");
    assert!(count(&result, "scheduler.starvation_guard_count", "pool") >= 1);
    assert!(began.elapsed() < Duration::from_secs(20));
    // What is committed is in the compiled order all the same: the priority of regions decides
    // there.
    assert_eq!(
        result.order.last().map(String::as_str),
        Some("background00")
    );
}

#[test]
fn a_pool_that_fails_fast_is_not_run_ahead() {
    // `b` gets two messages, and its lane takes one: but `a` comes before, and ends the run.
    let lanes = "one: {type: thread_pool}, two: {type: thread_pool, overflow: fail_fast}";
    let text = two_branches(lanes);
    let text = text
        .text()
        .replace("epochs: [[1]]", "epochs: [[1, 2]]")
        .replace(
            "to: b.in, kind: immediate",
            "to: b.in, kind: immediate, policy: {mode: queue, capacity: 4}",
        );
    let mut stage = Stage::file(&text);
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Meet", open, |invocation| {
        match invocation.component() {
            "a" => Err(Failure::new("on purpose")),
            _ => Ok(()),
        }
    });
    let result = stage.run_really(RunOptions::steps(2));
    assert_eq!(result.errors.len(), 1, "{:?}", result.errors);
    assert_eq!(result.errors[0].component_id, "a");
    assert_eq!(count(&result, "scheduler.rejected_count", "two"), 0);
}

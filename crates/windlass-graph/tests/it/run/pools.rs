//! `thread_pool` lanes: what runs where, what overlaps, and what is refused.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use windlass_graph::component::{Component, Descriptor, Failure, Invocation};
use windlass_graph::{RunOptions, StopReason};
use windlass_sync::CancellationToken;

use super::stage::{Stage, count, traced};

/// A source of `jobs` messages an epoch, a `test.Work` on a pool with `lane`, and a sink for what
/// it publishes.
fn pool(jobs: usize, lane: &str, execution: &str) -> Stage {
    let list: Vec<String> = (1..=jobs).map(|n| n.to_string()).collect();
    Stage::new(&format!(
        "
lanes:
  main: {{type: event_loop}}
  pool: {{type: thread_pool, {lane}}}
components:
  - {{id: a, type: test.Source, config: {{epochs: [[{jobs}]], repeat: true}}, execution: {{lane: main}}}}
  - {{id: w, type: test.Work, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: pool{execution}}}}}
  - {{id: z, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: jobs, from: a.out, to: w.in, kind: immediate, policy: {{mode: queue, capacity: 64}}}}
  - {{id: done, from: w.out, to: z.in, kind: immediate, policy: {{mode: queue, capacity: 64}}}}
",
        jobs = list.join(", ")
    ))
}

fn open() -> Descriptor {
    Descriptor::new().open_ports().open_config()
}

fn forward(invocation: &mut Invocation<'_>) {
    let payload = invocation.inputs()[0].payload().clone();
    invocation.publish_to("out", payload);
}

#[test]
fn reentrant_invocations_overlap_up_to_max_threads() {
    let mut stage = pool(6, "max_threads: 3, queue_capacity: 3", ", reentrant: true");
    let (meeting, now, most) = (
        Arc::new(Barrier::new(3)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let seen = most.clone();
    stage
        .registry
        .function("test.Work", open(), move |invocation| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // No invocation gets through unless three are here at once.
            meeting.wait();
            now.fetch_sub(1, Ordering::SeqCst);
            forward(invocation);
            Ok(())
        });
    let result = stage.run_really(RunOptions::steps(1));
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(seen.load(Ordering::SeqCst), 3);
    assert_eq!(count(&result, "scheduler.active_count", "pool"), 3);
    assert_eq!(count(&result, "scheduler.in_flight_count", "pool"), 6);
    assert_eq!(count(&result, "scheduler.queue_depth", "pool"), 3);
    assert_eq!(count(&result, "scheduler.worker_count", "pool"), 3);
    assert_eq!(count(&result, "component.max_in_flight_count", "w"), 3);
    // Committed in the order of the messages, whichever worker was faster.
    let expected: Vec<String> = (1..=6).map(|n| format!("z: in={n}")).collect();
    assert_eq!(stage.log.take(), expected);
}

#[test]
fn workers_persist_across_steps() {
    let mut stage = pool(2, "max_threads: 2", ", reentrant: true");
    let threads: Arc<Mutex<HashSet<ThreadId>>> = Arc::default();
    let seen = threads.clone();
    stage.registry.function("test.Work", open(), move |_| {
        threads.lock().unwrap().insert(std::thread::current().id());
        Ok(())
    });
    stage.run_really(RunOptions::steps(200));
    let threads = seen.lock().unwrap().len();
    assert!((1..=2).contains(&threads), "{threads} threads");
}

#[test]
fn non_reentrant_serialisation() {
    struct Alone(Arc<AtomicUsize>);
    impl Component for Alone {
        fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
            assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "two at once");
            std::thread::sleep(Duration::from_millis(1));
            self.0.fetch_sub(1, Ordering::SeqCst);
            forward(invocation);
            Ok(())
        }
    }
    // Whatever the graph says, and whatever the type offers: one of both has to allow it.
    for execution in ["", ", reentrant: true"] {
        let mut stage = pool(6, "max_threads: 3, queue_capacity: 9", execution);
        let inside = Arc::new(AtomicUsize::new(0));
        stage
            .registry
            .register_with("test.Work", open(), move || Box::new(Alone(inside.clone())));
        let result = stage.run_really(RunOptions::steps(2));
        assert!(result.is_ok(), "{:?}", result.errors);
        assert_eq!(stage.log.take().len(), 12);
        assert_eq!(count(&result, "component.max_in_flight_count", "w"), 1);
    }
}

#[test]
fn stop_drains_admitted_work() {
    let stop = CancellationToken::new();
    let mut stage = pool(6, "max_threads: 1, queue_capacity: 9", ", reentrant: true");
    let asked = stop.clone();
    stage
        .registry
        .function("test.Work", open(), move |invocation| {
            asked.cancel();
            assert!(invocation.cancel_requested());
            forward(invocation);
            Ok(())
        });
    let mut options = RunOptions::steps(9).traced();
    options.stop = stop;
    let result = stage.run_really(options);
    assert_eq!(result.stop_reason, StopReason::StopRequested);
    assert_eq!(result.epochs, 1);
    assert_eq!(
        stage.log.take().len(),
        6,
        "what was admitted is done, and committed"
    );
    assert_eq!(
        count(&result, "component.cancellation_observed_count", "w"),
        6
    );
    assert_eq!(traced(&result, "component_cancellation_observed").len(), 6);
}

#[test]
fn queue_capacity_rejects_newest() {
    let stage = with_pass(pool(
        5,
        "max_threads: 2, queue_capacity: 1",
        ", reentrant: true",
    ));
    let result = stage.run_really(RunOptions::steps(1));
    assert_eq!(stage.log.take(), ["z: in=1", "z: in=2", "z: in=3"]);
    assert_eq!(count(&result, "scheduler.rejected_count", "pool"), 2);
}

#[test]
fn reject_new_keeps_the_oldest() {
    let lane = "max_threads: 1, queue_capacity: 1, overflow: reject_new";
    let stage = with_pass(pool(5, lane, ", reentrant: true, priority: low"));
    let result = stage.run_really(RunOptions::steps(1));
    assert_eq!(stage.log.take(), ["z: in=1", "z: in=2"]);
    assert_eq!(
        count(&result, "scheduler.low_priority_rejected_count", "pool"),
        3
    );
}

#[test]
fn drops_oldest_when_configured() {
    for overflow in ["drop_oldest", "overwrite"] {
        let lane = format!("max_threads: 1, queue_capacity: 1, overflow: {overflow}");
        let stage = with_pass(pool(5, &lane, ", reentrant: true"));
        stage.run_really(RunOptions::steps(1));
        assert_eq!(stage.log.take(), ["z: in=4", "z: in=5"], "{overflow}");
    }
}

#[test]
fn a_lane_that_fails_fast_ends_the_run() {
    let stage = with_pass(pool(5, "overflow: fail_fast", ", reentrant: true"));
    let result = stage.run_really(RunOptions::steps(3));
    assert_eq!(result.stop_reason, StopReason::Error);
    assert!(
        result.errors[0]
            .message
            .contains("admits 1 invocations, and 5")
    );
    assert!(stage.log.take().is_empty());
}

/// A pool without a queue admits as many as it has workers.
#[test]
fn queue_capacity_zero_is_the_width_of_the_pool() {
    let stage = with_pass(pool(5, "max_threads: 2", ", reentrant: true"));
    stage.run_really(RunOptions::steps(1));
    assert_eq!(stage.log.take().len(), 2);
}

fn with_pass(mut stage: Stage) -> Stage {
    stage.registry.function("test.Work", open(), |invocation| {
        forward(invocation);
        Ok(())
    });
    stage
}

#[test]
fn structured_worker_errors() {
    let mut stage = pool(3, "max_threads: 2, queue_capacity: 9", ", reentrant: true");
    stage.registry.function("test.Work", open(), |invocation| {
        forward(invocation);
        match invocation.inputs()[0].payload().as_i64() {
            Some(2) => Err(Failure::new("the second one")),
            _ => Ok(()),
        }
    });
    let result = stage.run_really(RunOptions::steps(3));
    assert_eq!(result.stop_reason, StopReason::Error);
    let error = &result.errors[0];
    assert_eq!(
        (
            error.phase.as_str(),
            error.component_id.as_str(),
            error.lane.as_str()
        ),
        ("execute", "w", "pool")
    );
    assert_eq!(error.code.name(), "component_execute");
    assert_eq!(error.message, "the second one");
    assert!(error.fatal);
    assert!(
        stage.log.take().is_empty(),
        "nothing of the batch was committed"
    );
}

#[test]
fn publish_never_recurses() {
    let stage = with_pass(pool(3, "max_threads: 2, queue_capacity: 9", ""));
    let result = stage.run_really(RunOptions::steps(1).traced());
    // Nothing downstream runs before the work upstream is over.
    assert_eq!(result.order, ["a", "w", "w", "w", "z", "z", "z"]);
}

#[test]
fn order_is_given_up_where_an_edge_says_so() {
    let mut stage = pool(4, "max_threads: 4", ", reentrant: true");
    let text = stage.text().replace(
        "kind: immediate, policy: {mode: queue, capacity: 64}}\n",
        "kind: immediate, policy: {mode: queue, capacity: 64, preserve_order: false}}\n",
    );
    stage = Stage::file(&text);
    stage.registry.function("test.Work", open(), |invocation| {
        let number = invocation.inputs()[0]
            .payload()
            .as_i64()
            .unwrap_or_default();
        // The last comes first, by far.
        std::thread::sleep(Duration::from_millis(40 * (4 - number as u64)));
        forward(invocation);
        Ok(())
    });
    stage.run_really(RunOptions::steps(1));
    assert_eq!(
        stage.log.take(),
        ["z: in=4", "z: in=3", "z: in=2", "z: in=1"]
    );
}

#[test]
fn a_batch_says_which_workers_ran_it() {
    let stage = with_pass(pool(
        3,
        "max_threads: 2, queue_capacity: 9",
        ", reentrant: true",
    ));
    let result = stage.run_really(RunOptions::steps(1).traced());
    let batch = result
        .trace
        .events
        .iter()
        .find(|e| e.name.name() == "thread_pool_batch");
    let workers = batch.unwrap().attributes["worker_ids"]
        .as_array()
        .unwrap()
        .len();
    assert!((1..=2).contains(&workers));
    let calls = result.trace.events.iter();
    let calls = calls.filter(|e| e.name.name() == "component_execute" && e.component_id == "w");
    assert!(calls.clone().all(|e| e.worker_id.is_some()));
    assert_eq!(calls.count(), 3);
}

#[test]
fn priority_orders_without_starving() {
    let stage = Stage::new(
        "
lanes: {pool: {type: thread_pool, max_threads: 1}}
components:
  - {id: low, type: test.Sink, execution: {lane: pool, priority: background}}
  - {id: middle, type: test.Sink, execution: {lane: pool}}
  - {id: high, type: test.Sink, execution: {lane: pool, priority: high}}
edges: []
",
    );
    let result = stage.run_really(RunOptions::steps(50));
    let epoch = ["high", "middle", "low"];
    let expected: Vec<&str> = epoch.into_iter().cycle().take(150).collect();
    assert_eq!(result.order, expected);
    for class in ["high", "normal", "background"] {
        let name = format!("scheduler.priority_{class}_count");
        assert_eq!(count(&result, &name, "pool"), 50, "{class}");
    }
}

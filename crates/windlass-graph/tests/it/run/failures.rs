//! What goes wrong in a run, and what that does.

use std::time::Duration;

use windlass_graph::component::{Descriptor, Failure};
use windlass_graph::{RunOptions, StopReason};

use super::stage::{Stage, count};

/// A source, a component of this type with this `on_error`, and a sink.
fn graph(kind: &str, on_error: &str) -> Stage {
    Stage::new(&format!(
        "
components:
  - {{id: a, type: test.Source, config: {{epochs: [[1], [2], [3]]}}, execution: {{lane: main}}}}
  - {{id: f, type: {kind}, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main, on_error: {on_error}}}}}
  - {{id: z, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: a.out, to: f.in, kind: immediate}}
  - {{id: g, from: f.out, to: z.in, kind: immediate}}
"
    ))
}

#[test]
fn an_error_ends_the_run() {
    let stage = graph("test.Fail", "fail_fast");
    let result = stage.run(RunOptions::steps(3));
    assert_eq!(result.stop_reason, StopReason::Error);
    assert_eq!(stage.log.take(), ["f: in=1"]);
    assert!(!result.is_ok());
    assert_eq!(result.errors.len(), 1);
    assert_eq!(count(&result, "component.error_count", "f"), 1);
}

#[test]
fn an_error_that_is_put_up_with_discards_what_was_published() {
    let stage = graph("test.Fail", "continue");
    let result = stage.steps(3);
    assert_eq!(stage.log.take(), ["f: in=1", "f: in=2", "f: in=3"]);
    assert_eq!(count(&result, "component.error_count", "f"), 3);
    assert_eq!(result.errors.len(), 3);
    assert!(result.errors.iter().all(|error| !error.fatal));
    assert_eq!(count(&result, "channel.publish_count", "g"), 0);
    assert_eq!(
        result.metrics.sum("runtime.publication.error_discarded"),
        3.0
    );
}

#[test]
fn an_isolated_component_is_deactivated_and_runs_no_more() {
    let stage = graph("test.Fail", "isolate");
    let result = stage.steps(3);
    assert_eq!(stage.log.take(), ["f: in=1"]);
    assert_eq!(count(&result, "component.error_count", "f"), 1);
    assert_eq!(result.metrics.sum("runtime.lifecycle.isolated_count"), 1.0);
    assert_eq!(
        result.metrics.sum("runtime.lifecycle.deactivated_count"),
        3.0
    );
}

#[test]
fn a_panic_is_an_error_like_any_other() {
    let mut stage = graph("test.Panic", "continue");
    let open = Descriptor::new().open_ports();
    stage
        .registry
        .function("test.Panic", open, |_| panic!("on purpose"));
    let result = stage.steps(2);
    assert_eq!(count(&result, "component.error_count", "f"), 2);
    assert_eq!(result.errors[0].message, "panicked: on purpose");
}

#[test]
fn a_type_that_is_not_there_is_an_error_before_anything_runs() {
    let result = graph("no.Such", "fail_fast").run(RunOptions::steps(1));
    assert_eq!(result.stop_reason, StopReason::Error);
    assert_eq!(result.ticks, 0);
    assert!(result.errors[0].message.contains("no.Such"));
    assert_eq!(result.errors[0].code.name(), "validation");
}

#[test]
fn stubs_stand_in_for_types_that_live_elsewhere() {
    let mut stage = graph("no.Such", "fail_fast");
    stage.registry.stub("no.Such");
    assert_eq!(stage.seen(3), ["z: in=1", "z: in=2", "z: in=3"]);
}

#[test]
fn what_takes_too_long_is_counted_and_asked_to_cancel() {
    let mut stage = Stage::new(
        "
lanes: {main: {type: event_loop, max_callback_ms: 5}}
components:
  - {id: slow, type: test.Slow, execution: {lane: main, budget_ms: 1}}
edges: []
",
    );
    let open = Descriptor::new().open_ports();
    stage.registry.function("test.Slow", open, |invocation| {
        let mut turns = 0;
        while !invocation.cancel_requested() {
            std::thread::sleep(Duration::from_millis(1));
            turns += 1;
            assert!(turns < 5_000, "nobody asked");
        }
        Ok(())
    });
    let result = stage.run_really(RunOptions::steps(2).traced());
    assert!(result.is_ok(), "{:?}", result.errors);
    for name in [
        "budget_overrun",
        "timeout_budget_exceeded",
        "cancellation_requested",
        "cancellation_observed",
    ] {
        assert_eq!(
            count(&result, &format!("component.{name}_count"), "slow"),
            2,
            "{name}"
        );
    }
    let names: Vec<&str> = result.trace.events.iter().map(|e| e.name.name()).collect();
    assert!(names.contains(&"component_timeout_budget_exceeded"));
    assert!(names.contains(&"component_cancellation_requested"));
}

#[test]
fn a_wrong_type_at_a_port_says_what_it_wanted() {
    let stage = Stage::new(
        "
components:
  - {id: a, type: test.Source, config: {epochs: [[text]]}, execution: {lane: main}}
  - {id: e, type: windlass.example.Estimator, trigger_policy: {type: any_input, input: sensor}, execution: {lane: main}}
edges:
  - {id: s, from: a.out, to: e.sensor, kind: immediate}
",
    );
    let result = stage.run(RunOptions::steps(1));
    assert_eq!(
        result.errors[0].message,
        "port sensor takes number, and got text"
    );
}

#[test]
fn health_events_are_coalesced_and_bounded() {
    let mut text = String::from(
        "schema_version: 1\ngraph: {name: noisy, kind: internal_test, config: {health_event_capacity: 2}}\nlanes: {main: {type: event_loop}}\ncomponents:\n  - {id: a, type: test.Source, config: {epochs: [[1, 2, 3]]}, execution: {lane: main}}\n",
    );
    for n in 0..4 {
        text.push_str(&format!("  - {{id: z{n}, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}\n"));
    }
    text.push_str("edges:\n");
    for n in 0..4 {
        text.push_str(&format!(
            "  - {{id: e{n}, from: a.out, to: z{n}.in, kind: immediate}}\n"
        ));
    }
    let result = Stage::file(&text).steps(1);
    assert_eq!(result.health.len(), 2);
    assert!(result.health.iter().all(|event| event.count == 2));
    assert_eq!(result.metrics.sum("runtime.health.event_count"), 8.0);
    assert_eq!(result.metrics.sum("runtime.health.dropped_count"), 4.0);
    let quiet = text.replace("health_event_capacity: 2", "emit_health_events: false");
    assert!(Stage::file(&quiet).steps(1).health.is_empty());
}

#[test]
fn failure_is_made_of_any_error() {
    fn read() -> Result<String, Failure> {
        Ok(std::fs::read_to_string("/no/such/file")?)
    }
    let failure = read().unwrap_err();
    assert!(failure.source().is_some());
    assert!(failure.message().contains("No such file"));
}

#[test]
fn user_code_that_panics_anywhere_ends_the_run_and_not_the_program() {
    use std::sync::Arc;
    use windlass_graph::component::{Component, Invocation, Reentrant, Setup};

    struct Panics(&'static str);
    impl Panics {
        fn at(&self, place: &str) {
            assert_ne!(self.0, place, "on purpose");
        }
    }
    impl Component for Panics {
        fn configure(&mut self, _: &mut Setup<'_>) -> Result<(), Failure> {
            self.at("configure");
            Ok(())
        }
        fn activate(&mut self) -> Result<(), Failure> {
            self.at("activate");
            Ok(())
        }
        fn execute(&mut self, _: &mut Invocation<'_>) -> Result<(), Failure> {
            self.at("execute");
            Ok(())
        }
        fn deactivate(&mut self) -> Result<(), Failure> {
            self.at("deactivate");
            Ok(())
        }
        fn reentrant(&mut self) -> Option<Arc<dyn Reentrant>> {
            self.at("reentrant");
            None
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                self.at("drop");
            }
        }
    }
    for place in [
        "make",
        "configure",
        "activate",
        "reentrant",
        "execute",
        "deactivate",
        "drop",
    ] {
        let mut stage = graph("test.Panics", "fail_fast");
        let open = Descriptor::new().open_ports();
        stage.registry.register_with("test.Panics", open, move || {
            assert_ne!(place, "make", "on purpose");
            Box::new(Panics(place))
        });
        let result = stage.run(RunOptions::steps(1));
        let ends = !matches!(place, "deactivate" | "drop");
        assert_eq!(result.stop_reason == StopReason::Error, ends, "{place}");
        if place != "drop" {
            assert!(result.errors[0].message.contains("on purpose"), "{place}");
        }
    }
}

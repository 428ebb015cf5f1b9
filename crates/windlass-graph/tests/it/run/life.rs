//! The life of components: started, configured anew, kept and restored, stopped.

use serde_json::{Value, json};
use windlass_graph::component::{Component, Descriptor, Failure, Invocation, Setup};
use windlass_graph::model::Config;
use windlass_graph::run::{ConfigTransaction, ReconfigureError};
use windlass_graph::{RunOptions, StopReason};
use windlass_runtime::Runtime;

use super::stage::{Log, Stage, traced};

/// Writes down what is asked of it, and fails where its configuration says so.
struct Diary {
    log: Log,
    id: String,
    fails: String,
    calls: i64,
}

impl Diary {
    fn note(&mut self, what: &str) -> Result<(), Failure> {
        self.log.push(format!("{} {what}", self.id));
        match self.fails == what {
            true => Err(Failure::new(format!("{what} failed"))),
            false => Ok(()),
        }
    }
}

impl Component for Diary {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.id = setup.id().to_owned();
        let fails = setup.config().get("fails").and_then(|what| what.as_str());
        self.fails = fails.unwrap_or_default().to_owned();
        self.note("configure")
    }
    fn activate(&mut self) -> Result<(), Failure> {
        self.note("activate")
    }
    fn restore(&mut self, snapshot: &Value) -> Result<(), Failure> {
        self.calls = snapshot.as_i64().unwrap_or_default();
        self.note("restore")
    }
    fn reset(&mut self) -> Result<(), Failure> {
        self.calls = 0;
        self.note("reset")
    }
    fn execute(&mut self, _: &mut Invocation<'_>) -> Result<(), Failure> {
        self.calls += 1;
        self.note("execute")
    }
    fn snapshot(&mut self) -> Result<Option<Value>, Failure> {
        self.note("snapshot")?;
        Ok(Some(json!(self.calls)))
    }
    fn deactivate(&mut self) -> Result<(), Failure> {
        self.note("deactivate")
    }
    fn validate_config(&self, config: &Config) -> Result<(), Failure> {
        self.log.push(format!("{} validate", self.id));
        match config.contains_key("bad") {
            true => Err(Failure::new("bad")),
            false => Ok(()),
        }
    }
    fn reconfigure(&mut self, config: &Config) -> Result<(), Failure> {
        let value = config.get("value").cloned().unwrap_or_default();
        self.log.push(format!("{} value {value}", self.id));
        match value == json!("unlucky") {
            true => Err(Failure::new("unlucky")),
            false => Ok(()),
        }
    }
}

/// `second` is started before `first`, which depends on it.
fn diaries(first: &str, second: &str) -> Stage {
    let mut stage = Stage::new(&format!(
        "
components:
  - {{id: first, type: test.Diary, depends_on: [second], config: {{value: old{first}}}, execution: {{lane: main}}}}
  - {{id: second, type: test.Diary, config: {{value: old{second}}}, execution: {{lane: main}}}}
edges: []
"
    ));
    let log = stage.log.clone();
    let open = Descriptor::new().open_config();
    stage.registry.register_with("test.Diary", open, move || {
        Box::new(Diary {
            log: log.clone(),
            id: String::new(),
            fails: String::new(),
            calls: 0,
        })
    });
    stage
}

#[test]
fn components_are_started_in_the_order_of_depends_on_and_stopped_in_the_opposite_one() {
    assert_eq!(
        diaries("", "").seen(1),
        [
            "second configure",
            "second activate",
            "first configure",
            "first activate",
            "first execute",
            "second execute",
            "first deactivate",
            "second deactivate",
        ]
    );
}

#[test]
fn what_was_started_is_stopped_when_a_later_one_fails() {
    let stage = diaries(", fails: activate", "");
    let result = stage.run(RunOptions::steps(1));
    assert_eq!(result.stop_reason, StopReason::Error);
    assert_eq!(result.errors[0].code.name(), "component_activate");
    assert_eq!(result.errors[0].phase, "activate");
    assert_eq!(
        stage.log.take(),
        [
            "second configure",
            "second activate",
            "first configure",
            "first activate",
            "second deactivate",
        ]
    );
}

#[test]
fn an_error_while_stopping_is_told_and_stops_nobody() {
    let stage = diaries(", fails: deactivate", "");
    let result = stage.run(RunOptions::steps(1));
    assert_eq!(result.stop_reason, StopReason::TickBound);
    assert_eq!(result.errors[0].code.name(), "component_deactivate");
    assert_eq!(stage.log.take().last().unwrap(), "second deactivate");
}

#[test]
fn a_run_goes_on_from_a_snapshot() {
    let stage = diaries("", "");
    let options = RunOptions {
        snapshot: true,
        ..RunOptions::steps(3)
    };
    let first = stage.run(options.clone().traced());
    let snapshot = first.snapshot.clone().unwrap();
    assert_eq!(snapshot.components["first"], json!(3));
    assert_eq!(traced(&first, "component_snapshot").len(), 2);
    let options = RunOptions {
        restore: Some(snapshot),
        ..options.traced()
    };
    let second = stage.run(options.clone());
    assert_eq!(second.snapshot.unwrap().components["first"], json!(6));
    assert_eq!(
        traced(&stage.run(options.clone()), "component_restore").len(),
        2
    );
    let options = RunOptions {
        reset: true,
        ..options
    };
    let third = stage.run(options);
    assert_eq!(
        third.snapshot.as_ref().unwrap().components["first"],
        json!(3)
    );
    assert_eq!(traced(&third, "component_reset").len(), 2);
}

fn config(text: Value) -> Config {
    text.as_object().cloned().unwrap()
}

fn reconfigured(changes: ConfigTransaction) -> (Vec<String>, windlass_graph::RunResult) {
    let stage = diaries("", "");
    let run = stage.begin(RunOptions::steps(1).traced());
    run.control().reconfigure(changes).unwrap();
    let result = Runtime::simulated(1).block_on(run.run());
    let log = stage.log.take();
    let about = |line: &String| line.contains("valid") || line.contains("value");
    (log.into_iter().filter(about).collect(), result)
}

#[test]
fn a_configuration_changes_for_all_or_for_none() {
    let new = || config(json!({"value": "new"}));
    let both = ConfigTransaction::new()
        .set("first", new())
        .set("second", new());
    let (log, result) = reconfigured(both);
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(
        log,
        [
            "first validate",
            "second validate",
            "first value \"new\"",
            "second value \"new\"",
        ]
    );
    assert_eq!(
        traced(&result, "config_transaction"),
        [
            "config_transaction_validate",
            "config_transaction_validate",
            "config_transaction_apply",
            "config_transaction_apply",
            "config_transaction_commit",
            "config_transaction_commit",
        ]
    );

    let refused = ConfigTransaction::new()
        .set("first", new())
        .set("second", config(json!({"bad": true})));
    let (log, result) = reconfigured(refused);
    assert_eq!(result.stop_reason, StopReason::Error);
    assert_eq!(log, ["first validate", "second validate"]);
    assert_eq!(result.ticks, 0);

    let unlucky = ConfigTransaction::new()
        .set("first", new())
        .set("second", config(json!({"value": "unlucky"})));
    let (log, result) = reconfigured(unlucky);
    assert_eq!(result.stop_reason, StopReason::Error);
    assert_eq!(
        log[2..],
        [
            "first value \"new\"",
            "second value \"unlucky\"",
            "second value \"old\"",
            "first value \"old\"",
        ]
    );
    assert_eq!(traced(&result, "rollback").len(), 2);
    assert_eq!(result.metrics.sum("runtime.config.rollback_count"), 2.0);
}

#[test]
fn a_transaction_for_nobody_ends_the_run_and_names_it() {
    let nobody = ConfigTransaction::new().set("nobody", Config::new());
    let (_, result) = reconfigured(nobody);
    assert!(result.errors[0].message.contains("nobody"));
}

#[test]
fn a_transaction_that_nobody_will_do_is_refused_or_counted() {
    let stage = diaries("", "");
    let run = stage.begin(RunOptions::steps(1));
    let control = run.control().clone();
    let none = ConfigTransaction::new;
    for _ in 0..1024 {
        control.reconfigure(none()).unwrap();
    }
    let full = control.reconfigure(none());
    assert_eq!(full, Err(ReconfigureError::TooMany { most: 1024 }));
    control.stop();
    let result = Runtime::simulated(1).block_on(run.run());
    assert_eq!(result.metrics.sum("runtime.config.unapplied_count"), 1024.0);
    assert_eq!(control.reconfigure(none()), Err(ReconfigureError::Ended));
}

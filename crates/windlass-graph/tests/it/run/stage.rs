//! A stage for graphs under test: sources that play what their configuration says, sinks that write
//! down what they get, and a way to run it all in a simulation or for real.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use windlass_graph::Run;
use windlass_graph::component::{
    Component, Descriptor, Failure, Invocation, Output, Registry, Setup,
};
use windlass_graph::model::BoundaryRole;
use windlass_graph::run::HealthKind;
use windlass_graph::{LoadOptions, Prepared, RunOptions, RunResult, load};
use windlass_runtime::Runtime;
use windlass_value::Payload;

/// What sinks have written down: `id: port=value port=value`.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn push(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A graph under test.
pub(crate) struct Stage {
    pub(crate) log: Log,
    pub(crate) registry: Registry,
    text: String,
}

const HEAD: &str = "schema_version: 1\ngraph: {name: stage, kind: internal_test}\n";
const MAIN: &str = "lanes: {main: {type: event_loop}}\n";

impl Stage {
    /// A whole file.
    pub(crate) fn file(text: &str) -> Stage {
        let log = Log::default();
        let mut registry = Registry::built_in();
        register(&mut registry, &log);
        Stage {
            log,
            registry,
            text: text.to_owned(),
        }
    }

    /// Everything but the head; the lane is `main`, unless it says otherwise.
    pub(crate) fn new(text: &str) -> Stage {
        let lanes = if text.contains("lanes:") { "" } else { MAIN };
        Stage::file(&format!("{HEAD}{lanes}{text}"))
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn prepared(&self) -> Prepared {
        let loaded = load(&self.text, &LoadOptions::default())
            .unwrap_or_else(|errors| panic!("the test's graph: {errors}"));
        Prepared::new(loaded.graph, self.registry.clone()).expect("it compiles")
    }

    pub(crate) fn begin(&self, options: RunOptions) -> Run {
        self.prepared().begin(options)
    }

    /// Runs in a simulation.
    pub(crate) fn run(&self, options: RunOptions) -> RunResult {
        Runtime::simulated(1).block_on(self.prepared().run(options))
    }

    /// So many epochs, which have to go well.
    pub(crate) fn steps(&self, steps: u64) -> RunResult {
        let result = self.run(RunOptions::steps(steps).traced());
        assert!(result.is_ok(), "{:?}", result.errors);
        result
    }

    /// Runs for real.
    pub(crate) fn run_really(&self, options: RunOptions) -> RunResult {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        runtime.block_on(self.prepared().run(options))
    }

    /// What the sinks wrote down in so many epochs.
    pub(crate) fn seen(&self, steps: u64) -> Vec<String> {
        self.steps(steps);
        self.log.take()
    }
}

/// The count of a channel, component or lane.
pub(crate) fn count(result: &RunResult, name: &str, id: &str) -> u64 {
    let name = format!("runtime.{name}");
    let value = result.metrics.of(&name, id);
    value.unwrap_or_else(|| panic!("no sample {name} of {id}")) as u64
}

/// How often a health event was raised.
pub(crate) fn health(result: &RunResult, kind: HealthKind) -> u64 {
    let events = result.health.iter().filter(|event| event.kind == kind);
    events.map(|event| event.count).sum()
}

/// The names of the trace's events that contain this.
pub(crate) fn traced(result: &RunResult, part: &str) -> Vec<String> {
    let events = result.trace.events.iter().map(|event| event.name.name());
    let events = events.filter(|name| name.contains(part));
    events.map(str::to_owned).collect()
}

fn register(registry: &mut Registry, log: &Log) {
    registry.register_with(
        "test.Source",
        Descriptor::new()
            .output("out")
            .open_ports()
            .open_config()
            .boundary(BoundaryRole::Input),
        || Box::new(Source::default()),
    );
    let lines = log.clone();
    let open = || Descriptor::new().open_ports().open_config();
    registry.function("test.Sink", open(), move |invocation| {
        lines.push(line(invocation));
        Ok(())
    });
    let lines = log.clone();
    registry.function("test.Pass", open(), move |invocation| {
        lines.push(line(invocation));
        let payloads: Vec<Payload> = invocation.take_inputs().map(|m| m.into_payload()).collect();
        for payload in payloads {
            invocation.publish_to("out", payload);
        }
        Ok(())
    });
    let lines = log.clone();
    registry.function("test.Fail", open(), move |invocation| {
        lines.push(line(invocation));
        invocation.publish_to("out", "never seen");
        Err(Failure::new("no"))
    });
}

/// `id: port=value port=value`.
pub(crate) fn line(invocation: &Invocation<'_>) -> String {
    let mut line = format!("{}:", invocation.component());
    for message in invocation.inputs() {
        let late = if message.is_late() { "!" } else { "" };
        let port = invocation.port_of(message);
        line.push_str(&format!(" {port}={:?}{late}", message.payload()));
    }
    line
}

/// Publishes in each epoch what `config.epochs` lists for it: values, or `{value, at}` with a time
/// in milliseconds. After the last it is silent, unless `repeat` is true.
#[derive(Default)]
struct Source {
    output: Output<Payload>,
    epochs: Vec<Value>,
    repeat: bool,
    calls: usize,
}

impl Component for Source {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.output = setup.output("out")?;
        let epochs = setup
            .config()
            .get("epochs")
            .and_then(|list| list.as_array());
        self.epochs = epochs.cloned().unwrap_or_default();
        self.repeat = setup.config().get("repeat").is_some();
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let call = match self.repeat {
            true => self.calls % self.epochs.len(),
            false => self.calls,
        };
        self.calls += 1;
        let items = self.epochs.get(call).and_then(|items| items.as_array());
        for item in items.into_iter().flatten() {
            match item.get("at").and_then(|at| at.as_f64()) {
                Some(at) => {
                    let value = item.get("value").cloned().unwrap_or_default();
                    let time = (at * 1e6) as i64;
                    invocation.publish_at(self.output, Payload::from_json(value), time);
                }
                None => {
                    invocation.publish(self.output, Payload::from_json(item.clone()));
                }
            }
        }
        Ok(())
    }
}

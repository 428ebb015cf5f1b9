//! A stage for components under test: a source that plays what its configuration says, a sink that
//! writes down what it gets, and ways to run it all.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use windlass_components::{Addresses, register_with};
use windlass_graph::component::{
    Component, Descriptor, Failure, Invocation, Output, Registry, Setup,
};
use windlass_graph::model::BoundaryRole;
use windlass_graph::{LoadOptions, Prepared, RunOptions, RunResult, StopReason, load};
use windlass_runtime::Runtime;
use windlass_sync::CancellationToken;
use windlass_value::Payload;

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// What sinks have written down: `port=value`, and `@time` if it has one.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<(Mutex<Vec<String>>, Condvar)>);

impl Log {
    fn push(&self, line: String) {
        self.0.0.lock().unwrap().push(line);
        self.0.1.notify_all();
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.0.lock().unwrap())
    }

    /// Waits for so many lines.
    #[track_caller]
    pub(crate) fn wait_for(&self, lines: usize) -> Vec<String> {
        let (seen, waited) = self
            .0
            .1
            .wait_timeout_while(self.0.0.lock().unwrap(), LIMIT, |seen| seen.len() < lines)
            .unwrap();
        assert!(!waited.timed_out(), "only {seen:?}");
        seen.clone()
    }
}

/// Keeps a component of type `test.Gate` from going on, until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_timeout_while(open, LIMIT, |open| !*open));
    }
}

/// A graph under test.
pub(crate) struct Stage {
    pub(crate) log: Log,
    pub(crate) gate: Gate,
    pub(crate) addresses: Addresses,
    registry: Registry,
    text: String,
}

/// A graph that runs in a thread of its own.
pub(crate) struct Live {
    stop: CancellationToken,
    thread: JoinHandle<RunResult>,
    pub(crate) log: Log,
    pub(crate) addresses: Addresses,
}

const HEAD: &str = "schema_version: 2\ngraph: {name: stage, kind: internal_test}\n";
const MAIN: &str = "lanes: {main: {type: event_loop}}\n";
/// Every message of a test counts.
const QUEUE: &str = "policy: {mode: queue, capacity: 1000, overflow: reject}";

impl Stage {
    /// Everything but the head; the lane is `main`, unless it says otherwise. `QUEUE` is a policy.
    pub(crate) fn new(text: &str) -> Stage {
        let lanes = if text.contains("lanes:") { "" } else { MAIN };
        let text = format!("{HEAD}{lanes}{}", text.replace("QUEUE", QUEUE));
        let (log, gate, addresses) = (Log::default(), Gate::default(), Addresses::new());
        let mut registry = Registry::built_in();
        register_with(&mut registry, &addresses);
        register_tests(&mut registry, &log, &gate);
        Stage {
            log,
            gate,
            addresses,
            registry,
            text,
        }
    }

    /// A source of this type, and a sink.
    pub(crate) fn source(type_name: &str, config: &str) -> Stage {
        Stage::new(&format!(
            "
components:
  - {{id: in, type: {type_name}, config: {{{config}}}, execution: {{lane: main}}}}
  - {{id: out, type: test.Sink, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: out.in, kind: immediate, QUEUE}}
"
        ))
    }

    /// What the test's source plays goes to a sink of this type.
    pub(crate) fn sink(type_name: &str, config: &str, epochs: &str) -> Stage {
        Stage::new(&format!(
            "
components:
  - {{id: in, type: test.Source, config: {{epochs: {epochs}}}, execution: {{lane: main}}}}
  - {{id: out, type: {type_name}, config: {{{config}}}, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: out.in, kind: immediate, QUEUE}}
"
        ))
    }

    /// What the test's source plays goes through a component of this type; what comes out of these
    /// ports is written down.
    pub(crate) fn through(type_name: &str, config: &str, outputs: &[&str], epochs: &str) -> Stage {
        let edge = |port: &&str| {
            format!(
                "  - {{id: e-{port}, from: it.{port}, to: out.{port}, kind: immediate, QUEUE}}\n"
            )
        };
        let edges: String = outputs.iter().map(edge).collect();
        let ports = outputs.join(", ");
        Stage::new(&format!(
            "
components:
  - {{id: in, type: test.Source, config: {{epochs: {epochs}}}, execution: {{lane: main}}}}
  - {{id: it, type: {type_name}, config: {{{config}}}, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
  - {{id: out, type: test.Sink, trigger_policy: {{type: any_input, inputs: [{ports}]}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: it.in, kind: immediate, QUEUE}}
{edges}"
        ))
    }

    /// With other words in its text.
    pub(crate) fn with(mut self, from: &str, to: &str) -> Stage {
        assert!(self.text.contains(from), "{}", self.text);
        self.text = self.text.replace(from, to);
        self
    }

    /// An error of the component under test does not end the run.
    pub(crate) fn forgiving(self, component: &str) -> Stage {
        let begin = self
            .text
            .find(&format!("{{id: {component},"))
            .expect("it is there");
        let lane = begin + self.text[begin..].find("{lane: main}").expect("its lane");
        let mut stage = self;
        stage.text.replace_range(
            lane..lane + "{lane: main}".len(),
            "{lane: main, on_error: continue}",
        );
        stage
    }

    pub(crate) fn prepared(&self) -> Prepared {
        let loaded = load(&self.text, &LoadOptions::default())
            .unwrap_or_else(|errors| panic!("the test's graph: {errors}"));
        Prepared::new(loaded.graph, self.registry.clone()).expect("it compiles")
    }

    /// Runs in a simulation, until it is idle.
    pub(crate) fn simulate(&self) -> RunResult {
        Runtime::simulated(1).block_on(self.prepared().run(until_idle()))
    }

    /// What the sinks wrote down in a simulation that has to go well.
    #[track_caller]
    pub(crate) fn seen(&self) -> Vec<String> {
        let result = self.simulate();
        assert!(result.is_ok(), "{:?}", result.errors);
        assert_eq!(result.stop_reason, StopReason::Idle);
        self.log.take()
    }

    /// What it says when it fails in a simulation.
    #[track_caller]
    pub(crate) fn fails(&self) -> String {
        told(&self.simulate())
    }

    /// Runs for real, until it is idle.
    pub(crate) fn run(&self) -> RunResult {
        self.run_with(until_idle())
    }

    /// Runs for real.
    pub(crate) fn run_with(&self, options: RunOptions) -> RunResult {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        runtime.block_on(self.prepared().run(options))
    }

    /// Starts it for real.
    pub(crate) fn start(&self) -> Live {
        let prepared = self.prepared();
        let stop = CancellationToken::new();
        let options = RunOptions {
            stop: stop.clone(),
            ..until_idle()
        };
        let thread = std::thread::spawn(move || {
            let runtime = Runtime::builder().workers(2).build().unwrap();
            runtime.block_on(prepared.run(options))
        });
        Live {
            stop,
            thread,
            log: self.log.clone(),
            addresses: self.addresses.clone(),
        }
    }
}

impl Live {
    /// Where this component listens.
    pub(crate) fn address(&self, component: &str) -> std::net::SocketAddr {
        let known =
            async { windlass_runtime::time::timeout(LIMIT, self.addresses.of(component)).await };
        Runtime::new().unwrap().block_on(known).expect("it listens")
    }

    /// Waits for its end.
    pub(crate) fn ended(self) -> RunResult {
        self.thread.join().expect("no panic")
    }

    /// Stops the run, and returns its result.
    pub(crate) fn stop(self) -> RunResult {
        self.stop.cancel();
        self.ended()
    }

    /// Stops it; it has to have gone well.
    #[track_caller]
    pub(crate) fn stop_well(self) {
        let result = self.stop();
        assert!(result.is_ok(), "{:?}", result.errors);
        assert_eq!(result.stop_reason, StopReason::StopRequested);
    }
}

pub(crate) fn until_idle() -> RunOptions {
    RunOptions {
        until_idle: true,
        duration: Some(LIMIT),
        ..RunOptions::default()
    }
}

/// What the errors of a run say.
#[track_caller]
pub(crate) fn told(result: &RunResult) -> String {
    assert!(!result.errors.is_empty(), "there should be an error");
    let messages = result.errors.iter().map(|error| error.message.clone());
    messages.collect::<Vec<_>>().join("\n")
}

#[track_caller]
pub(crate) fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// A file of this test alone, which goes with it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(content: impl AsRef<[u8]>) -> Scratch {
        let scratch = Scratch::missing();
        std::fs::write(&scratch.0, content).unwrap();
        scratch
    }

    /// A path at which nothing is.
    pub(crate) fn missing() -> Scratch {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-components-{}-{number}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }

    /// Returns the path as a setting: `path: '...'`.
    pub(crate) fn config(&self) -> String {
        format!("path: '{}'", self.0.display())
    }

    pub(crate) fn path(&self) -> String {
        self.0.display().to_string()
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn register_tests(registry: &mut Registry, log: &Log, gate: &Gate) {
    let source = Descriptor::new().output("out").open_config();
    registry.register_with("test.Source", source.boundary(BoundaryRole::Input), || {
        Box::new(Source::default())
    });
    let open = || Descriptor::new().open_ports().open_config();
    let write = |log: &Log, invocation: &Invocation<'_>| {
        for message in invocation.inputs() {
            let port = invocation.port_of(message);
            let time = message.event_time();
            let time = time.map(|time| format!("@{}", time as f64 / 1e6));
            let time = time.unwrap_or_default();
            let payload = message.payload().to_json().expect("plain values");
            log.push(format!("{port}={payload}{time}"));
        }
    };
    let lines = log.clone();
    registry.function("test.Sink", open(), move |invocation| {
        write(&lines, invocation);
        Ok(())
    });
    let (lines, gate) = (log.clone(), gate.clone());
    registry.function("test.Gate", open(), move |invocation| {
        write(&lines, invocation);
        gate.pass();
        Ok(())
    });
    registry.function("test.Objects", open(), |invocation| {
        if invocation.epoch() == 1 {
            invocation.publish_to("out", Payload::object(1_u8));
        }
        Ok(())
    });
}

/// Publishes in each epoch what `config.epochs` lists for it: values, or `{value, at}` with a time
/// in milliseconds, or `{bytes}`. After the last it is finished.
#[derive(Default)]
struct Source {
    output: Output<Payload>,
    epochs: Vec<Value>,
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
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let items = self
            .epochs
            .get(self.calls)
            .and_then(|items| items.as_array());
        for item in items.into_iter().flatten() {
            if let Some(bytes) = item.get("bytes").and_then(|bytes| bytes.as_str()) {
                invocation.publish(self.output, Payload::Bytes(bytes.as_bytes().into()));
                continue;
            }
            match item.get("at").and_then(|at| at.as_f64()) {
                Some(at) => {
                    let value = Payload::from_json(item["value"].clone());
                    invocation.publish_at(self.output, value, (at * 1e6) as i64);
                }
                None => {
                    invocation.publish(self.output, Payload::from_json(item.clone()));
                }
            }
        }
        self.calls += 1;
        if self.calls >= self.epochs.len() {
            invocation.finish();
        }
        Ok(())
    }
}

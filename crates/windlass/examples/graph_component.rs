//! A component of our own in a graph: a typed port on each side, a configuration, and what a run
//! counts.
//!
//! `cargo run --example graph_component --features graph`

use std::error::Error;

use windlass::Runtime;
use windlass::graph::check::{Level, check};
use windlass::graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Failure, Input, Invocation, Output, Registry,
    Setup,
};
use windlass::graph::diagnostic::Severity;
use windlass::graph::{LoadOptions, Prepared, RunOptions, load};

const GRAPH: &str = "
schema_version: 1
graph: {name: own_component}
lanes: {main: {type: event_loop}}
components:
  - {id: sensor, type: windlass.example.Sensor, execution: {lane: main}}
  - id: scale
    type: mine.Scale
    config: {factor: 2.5}
    trigger_policy: {type: any_input, input: in}
    execution: {lane: main}
  - id: print
    type: mine.Print
    boundary: {role: output}
    trigger_policy: {type: any_input, input: in}
    execution: {lane: main}
edges:
  - {id: readings, from: sensor.out, to: scale.in, kind: immediate}
  - {id: scaled, from: scale.out, to: print.in, kind: immediate}
";

/// Multiplies what comes.
#[derive(Default)]
struct Scale {
    factor: f64,
    input: Input<f64>,
    output: Output<f64>,
}

impl Component for Scale {
    fn describe() -> Descriptor {
        Descriptor::new()
            .input_of::<f64>("in")
            .output_of::<f64>("out")
            .field(ConfigField::new("factor", ConfigKind::Number).required())
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let factor = setup.config().get("factor").and_then(|f| f.as_f64());
        self.factor = factor.ok_or_else(|| Failure::new("factor has to be a number"))?;
        self.input = setup.input("in")?;
        self.output = setup.output("out")?;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        if let Some(reading) = invocation.get(self.input)? {
            invocation.publish(self.output, reading * self.factor);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = Registry::built_in();
    registry.register::<Scale>("mine.Scale");
    // A type without state is a function.
    let prints = Descriptor::new().input_of::<f64>("in");
    registry.function("mine.Print", prints, |invocation| {
        for message in invocation.inputs() {
            println!("epoch {}: {:?}", invocation.epoch(), message.payload());
        }
        Ok(())
    });

    let loaded = load(GRAPH, &LoadOptions::default())?;
    for finding in check(&loaded.graph, &registry, Level::Registry) {
        println!("{finding}");
        if finding.severity() == Severity::Error {
            return Err("the graph is not in order".into());
        }
    }
    let prepared = Prepared::new(loaded.graph, registry)?;
    let result = Runtime::new()?.block_on(prepared.run(RunOptions::steps(3)));
    println!("order: {}", result.order.join(", "));
    let published = "runtime.channel.publish_count";
    println!("{published}: {}", result.metrics.sum(published));
    match result.errors.first() {
        Some(error) => Err(error.to_string().into()),
        None => Ok(()),
    }
}

//! The built-in component types.
//!
//! | type | inputs | outputs | what it does |
//! |---|---|---|---|
//! | `windlass.boundary.Input` | | out | publishes the text `payload-<epoch>` |
//! | `windlass.boundary.Output` | in | | takes what comes |
//! | `windlass.boundary.FrameInput` | | out | publishes a frame: bytes, as many as `config.bytes` says |
//! | `windlass.boundary.BinaryInput` | | out | the same |
//! | `windlass.transform.Identity` | in | out | publishes what comes |
//! | `windlass.transform.Join` | left, right | out | publishes the first payload |
//! | `windlass.transform.Validator` | request | out | publishes what comes |
//! | `windlass.transform.AsyncWorker` | ready | out | publishes what comes |
//! | `windlass.example.Sensor` | | out | publishes the epoch's number |
//! | `windlass.example.Estimator` | sensor, correction | estimate | publishes the mean of what it has last seen of both |
//! | `windlass.example.Controller` | estimate | command, correction | publishes half of the estimate to both |
//! | `windlass.example.Actuator` | command | | takes what comes |

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Component, ConfigField, ConfigKind, Descriptor, Failure, Input, Invocation, Output, Port,
    Reentrant, Registry, Setup,
};
use windlass_plan::model::BoundaryRole;
use windlass_value::Payload;

/// What the built-in types say about themselves.
pub fn descriptors() -> BTreeMap<String, Descriptor> {
    let mut registry = Registry::new();
    register(&mut registry);
    registry.descriptors()
}

/// Adds the built-in types.
pub(super) fn register(registry: &mut Registry) {
    let source = |about: &str| {
        Descriptor::new()
            .output("out")
            .boundary(BoundaryRole::Input)
            .open_config()
            .about(about)
    };
    let sink = |port: &str, about: &str| {
        Descriptor::new()
            .input(port)
            .boundary(BoundaryRole::Output)
            .open_config()
            .about(about)
    };
    let pass = |port: &str, about: &str| {
        Descriptor::new()
            .input(port)
            .output("out")
            .open_config()
            .about(about)
    };
    registry.function(
        "windlass.boundary.Input",
        source("Publishes the text payload-<epoch>."),
        |invocation| {
            let text = format!("payload-{}", invocation.epoch());
            invocation.publish_to("out", text);
            Ok(())
        },
    );
    for (name, payload) in [
        ("windlass.boundary.FrameInput", "frame"),
        ("windlass.boundary.BinaryInput", "binary"),
    ] {
        let bytes = ConfigField::new("bytes", ConfigKind::Integer).within(0.0, 67_108_864.0);
        let descriptor = Descriptor::new()
            .output(Port::new("out").of(payload))
            .boundary(BoundaryRole::Input)
            .open_config()
            .field(bytes)
            .about("Publishes bytes, as many as config.bytes says.");
        registry.register_with(name, descriptor, || Box::new(Frames::default()));
    }
    for (name, port) in [
        ("windlass.boundary.Output", "in"),
        ("windlass.example.Actuator", "command"),
    ] {
        registry.function(name, sink(port, "Takes what comes."), |_| Ok(()));
    }
    for (name, port) in [
        ("windlass.transform.Identity", "in"),
        ("windlass.transform.Validator", "request"),
        ("windlass.transform.AsyncWorker", "ready"),
    ] {
        let descriptor = pass(port, "Publishes what comes.");
        registry.register_with(name, descriptor, || Box::new(Forward::default()));
    }
    registry.register_with(
        "windlass.transform.Join",
        Descriptor::new()
            .input("left")
            .input("right")
            .output("out")
            .open_config()
            .about("Publishes the first payload."),
        || Box::new(First::default()),
    );
    registry.function(
        "windlass.example.Sensor",
        source("Publishes the epoch's number."),
        |invocation| {
            let reading = invocation.epoch() as f64;
            invocation.publish_to("out", reading);
            Ok(())
        },
    );
    registry.register_with(
        "windlass.example.Estimator",
        Descriptor::new()
            .input("sensor")
            .input("correction")
            .output("estimate")
            .open_config()
            .about("Publishes the mean of what it has last seen of both inputs."),
        || Box::new(Estimator::default()),
    );
    registry.function(
        "windlass.example.Controller",
        Descriptor::new()
            .input("estimate")
            .output("command")
            .output("correction")
            .open_config()
            .about("Publishes half of the estimate to both outputs."),
        |invocation| {
            let estimate = invocation
                .input("estimate")
                .and_then(|m| m.payload().as_f64());
            let half = estimate.unwrap_or_default() / 2.0;
            invocation.publish_to("command", half);
            invocation.publish_to("correction", half);
            Ok(())
        },
    );
}

/// A source that publishes bytes.
#[derive(Default)]
struct Frames {
    output: Output<Payload>,
    frame: Option<Arc<[u8]>>,
}

/// How many bytes a frame has unless its configuration says so.
const FRAME_BYTES: u64 = 64;

impl Component for Frames {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.output = setup.output("out")?;
        let bytes = setup.config().get("bytes").and_then(|bytes| bytes.as_u64());
        self.frame = Some(vec![0; bytes.unwrap_or(FRAME_BYTES) as usize].into());
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        if let Some(frame) = &self.frame {
            invocation.publish(self.output, Payload::Bytes(frame.clone()));
        }
        Ok(())
    }
}

/// Publishes what comes, message by message.
#[derive(Default, Clone, Copy)]
struct Forward {
    output: Output<Payload>,
}

impl Reentrant for Forward {
    fn execute(&self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        for place in 0..invocation.inputs().len() {
            let payload = invocation.inputs()[place].payload().clone();
            invocation.publish(self.output, payload);
        }
        Ok(())
    }
}

impl Component for Forward {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.output = setup.output("out")?;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        Reentrant::execute(self, invocation)
    }

    fn reentrant(&mut self) -> Option<Arc<dyn Reentrant>> {
        Some(Arc::new(*self))
    }
}

/// Publishes the first payload of what comes together.
#[derive(Default)]
struct First {
    output: Output<Payload>,
}

impl Component for First {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.output = setup.output("out")?;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let first = invocation.inputs().first().map(|m| m.payload().clone());
        if let Some(first) = first {
            invocation.publish(self.output, first);
        }
        Ok(())
    }
}

/// The mean of what it has last seen.
#[derive(Default)]
struct Estimator {
    sensor: Input<f64>,
    correction: Input<f64>,
    output: Output<f64>,
    last: (f64, f64),
}

impl Component for Estimator {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.sensor = setup.input("sensor")?;
        self.correction = setup.input("correction")?;
        self.output = setup.output("estimate")?;
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.last = (0.0, 0.0);
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        self.last.0 = invocation.get(self.sensor)?.unwrap_or(self.last.0);
        self.last.1 = invocation.get(self.correction)?.unwrap_or(self.last.1);
        invocation.publish(self.output, (self.last.0 + self.last.1) / 2.0);
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<serde_json::Value>, Failure> {
        Ok(Some(serde_json::json!([self.last.0, self.last.1])))
    }

    fn restore(&mut self, snapshot: &serde_json::Value) -> Result<(), Failure> {
        let number = |place: usize| {
            snapshot
                .get(place)
                .and_then(|value| value.as_f64())
                .ok_or_else(|| Failure::new("its snapshot is a list of two numbers"))
        };
        self.last = (number(0)?, number(1)?);
        Ok(())
    }
}

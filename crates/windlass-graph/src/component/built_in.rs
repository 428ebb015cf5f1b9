//! The component types that every catalog has: what they say about themselves.

use std::collections::BTreeMap;

use super::{Descriptor, Port};
use crate::model::BoundaryRole;

/// What the built-in component types say about themselves, by the name of the type.
pub fn descriptors() -> BTreeMap<String, Descriptor> {
    let about = |about: &str| Descriptor::new().open_config().about(about);
    let types = [
        (
            "boundary.Input",
            about("Brings a text into the graph, `payload-<epoch>`.")
                .boundary(BoundaryRole::Input)
                .output("out"),
        ),
        (
            "boundary.Output",
            about("Takes what arrives out of the graph.")
                .boundary(BoundaryRole::Output)
                .input("in"),
        ),
        (
            "boundary.FrameInput",
            about("Brings a frame of pixels into the graph.")
                .boundary(BoundaryRole::Input)
                .output(Port::new("out").of("frame")),
        ),
        (
            "boundary.BinaryInput",
            about("Brings bytes into the graph.")
                .boundary(BoundaryRole::Input)
                .output(Port::new("out").of("binary")),
        ),
        (
            "transforms.Identity",
            about("Forwards what arrives.").input("in").output("out"),
        ),
        (
            "transforms.Join",
            about("Waits for two inputs and forwards the first payload.")
                .input("left")
                .input("right")
                .output("out"),
        ),
        (
            "transforms.Validator",
            about("Looks at requests and forwards them.")
                .input("request")
                .output("out"),
        ),
        (
            "transforms.AsyncWorker",
            about("Forwards the results of tasks.")
                .input("ready")
                .output("out"),
        ),
        (
            "example.Sensor",
            about("Measures something.")
                .boundary(BoundaryRole::Input)
                .output("out"),
        ),
        (
            "example.Estimator",
            about("Estimates from a measurement and a correction.")
                .input("sensor")
                .input("correction")
                .output("estimate"),
        ),
        (
            "example.Controller",
            about("Gives a command for an estimate, and corrects it.")
                .input("estimate")
                .output("command")
                .output("correction"),
        ),
        (
            "example.Actuator",
            about("Carries a command out.")
                .boundary(BoundaryRole::Output)
                .input("command"),
        ),
    ];
    types
        .into_iter()
        .map(|(name, descriptor)| (format!("topoexec.{name}"), descriptor))
        .collect()
}

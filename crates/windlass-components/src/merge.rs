//! `windlass.merge`: makes one stream of several.

use windlass_graph::component::{
    Component, Descriptor, Failure, Invocation, Output, Received, Setup,
};
use windlass_graph::model::Config;
use windlass_value::Payload;

use crate::emit::{emit, taken};
use crate::settings::fixed;

#[derive(Debug, Default)]
pub(crate) struct Merge {
    output: Output<Payload>,
}

/// Messages of the same invocation by when they were published.
fn age(message: &Received) -> (u64, u64, u64) {
    (message.epoch(), message.transaction(), message.id().seq)
}

impl Component for Merge {
    fn describe() -> Descriptor {
        Descriptor::new()
            .output("out")
            .open_ports()
            .about("Publishes everything that comes, at whatever port, in the order of arrival.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.output = setup.output("out")?;
        let other = setup.outputs().find(|name| *name != "out");
        match other {
            Some(name) => Err(Failure::new(format!(
                "there is no output {name}: a merge publishes at out"
            ))),
            None => Ok(()),
        }
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let mut messages = taken(invocation);
        messages.sort_by_key(age);
        for message in messages {
            let time = message.event_time();
            emit(invocation, self.output, message.into_payload(), time);
        }
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

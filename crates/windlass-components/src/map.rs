//! `windlass.map`: publishes what an expression makes of each message.

use windlass_graph::component::{Descriptor, Failure, Invocation, Output, Received, Setup};
use windlass_graph::expression::Expression;
use windlass_value::Payload;

use crate::emit::{computed, emit, scope};
use crate::per_message::MessageStep;

/// Publishes the value of the expression.
#[derive(Debug, Default)]
pub(crate) struct Map {
    output: Output<Payload>,
}

impl MessageStep for Map {
    fn describe(descriptor: Descriptor) -> Descriptor {
        let about = "Publishes what an expression makes of each message.";
        descriptor.output("out").about(about)
    }

    fn connect(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.output = setup.output("out")?;
        Ok(())
    }

    fn apply(
        &self,
        expression: &Expression,
        invocation: &mut Invocation<'_>,
        message: Received,
    ) -> Result<(), Failure> {
        let value = expression.evaluate(&scope(invocation, &message)?);
        let value = computed(expression, value)?;
        emit(invocation, self.output, value, message.event_time());
        Ok(())
    }
}

//! `windlass.filter`: parts messages by an expression.

use windlass_graph::component::{Descriptor, Failure, Invocation, Output, Received, Setup};
use windlass_graph::expression::Expression;
use windlass_value::Payload;

use crate::emit::{computed, emit, scope};
use crate::per_message::MessageStep;

/// Publishes each message at the output that the expression decides on.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    output: Output<Payload>,
    otherwise: Output<Payload>,
}

impl MessageStep for Filter {
    fn describe(descriptor: Descriptor) -> Descriptor {
        descriptor.output("out").output("else").about(
            "Publishes each message at out if an expression is true for it, and at else if it is \
             false.",
        )
    }

    fn connect(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.output = setup.output("out")?;
        self.otherwise = setup.output("else")?;
        Ok(())
    }

    fn apply(
        &self,
        expression: &Expression,
        invocation: &mut Invocation<'_>,
        message: Received,
    ) -> Result<(), Failure> {
        let holds = expression.holds(&scope(invocation, &message)?);
        let output = match computed(expression, holds)? {
            true => self.output,
            false => self.otherwise,
        };
        let time = message.event_time();
        emit(invocation, output, message.into_payload(), time);
        Ok(())
    }
}

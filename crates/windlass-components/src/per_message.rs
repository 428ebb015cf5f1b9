//! What `windlass.map` and `windlass.filter` have in common: an expression that is evaluated for
//! each message, and that can be replaced while they run.

use windlass_graph::component::{Component, Descriptor, Failure, Invocation, Received, Setup};
use windlass_graph::expression::{Expression, Names};
use windlass_graph::model::Config;

use crate::emit::taken;
use crate::settings::{Settings, expr_field};

/// What one type does with its expression.
pub(crate) trait MessageStep: Default + Send + 'static {
    /// Says what the type is like, except for its input and its expression.
    fn describe(descriptor: Descriptor) -> Descriptor;

    /// Finds the outputs.
    fn connect(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure>;

    /// Publishes what follows from a message.
    fn apply(
        &self,
        expression: &Expression,
        invocation: &mut Invocation<'_>,
        message: Received,
    ) -> Result<(), Failure>;
}

/// Evaluates an expression for each message.
#[derive(Debug, Default)]
pub(crate) struct PerMessage<S> {
    expression: Option<Expression>,
    step: S,
}

fn expression(config: &Config) -> Result<Expression, Failure> {
    Settings(config).expr(Names::Message)
}

impl<S: MessageStep> Component for PerMessage<S> {
    fn describe() -> Descriptor {
        S::describe(
            Descriptor::new()
                .input("in")
                .field(expr_field(Names::Message)),
        )
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.expression = Some(expression(setup.config())?);
        self.step.connect(setup)
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(expression) = &self.expression else {
            return Ok(());
        };
        for message in taken(invocation) {
            self.step.apply(expression, invocation, message)?;
        }
        Ok(())
    }

    fn validate_config(&self, config: &Config) -> Result<(), Failure> {
        expression(config).map(drop)
    }

    fn reconfigure(&mut self, config: &Config) -> Result<(), Failure> {
        self.expression = Some(expression(config)?);
        Ok(())
    }
}

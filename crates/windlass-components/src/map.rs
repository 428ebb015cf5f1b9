//! `windlass.map`: publishes what an expression makes of each message.

use windlass_graph::Payload;
use windlass_graph::component::{
    Component, ConfigFault, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output, Setup,
};
use windlass_graph::model::Config;

use crate::emit::{emit, evaluate, taken};
use crate::expression::Expression;
use crate::settings::{Settings, expression_faults};

#[derive(Debug, Default)]
pub(crate) struct Map {
    expression: Option<Expression>,
    output: Output<Payload>,
}

impl Component for Map {
    fn describe() -> Descriptor {
        Descriptor::new()
            .input("in")
            .output("out")
            .field(ConfigField::new("expr", ConfigKind::String).required())
            .about("Publishes what an expression makes of each message.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.expression = Some(Settings(setup.config()).expr()?);
        self.output = setup.output("out")?;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(expression) = &self.expression else {
            return Ok(());
        };
        for message in taken(invocation) {
            let value = evaluate(expression, invocation, &message)?;
            let time = message.event_time();
            emit(invocation, self.output, value, time);
        }
        Ok(())
    }

    fn check_config(&self, _: &str, config: &Config) -> Vec<ConfigFault> {
        expression_faults(config, "expr", Expression::new)
    }

    fn validate_config(&self, config: &Config) -> Result<(), Failure> {
        Settings(config).expr().map(drop)
    }

    fn reconfigure(&mut self, config: &Config) -> Result<(), Failure> {
        self.expression = Some(Settings(config).expr()?);
        Ok(())
    }
}

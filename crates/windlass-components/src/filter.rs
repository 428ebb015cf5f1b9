//! `windlass.filter`: parts messages by an expression.

use windlass_graph::Payload;
use windlass_graph::component::{
    Component, ConfigFault, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output, Setup,
};
use windlass_graph::model::Config;

use crate::emit::{emit, evaluate, taken};
use crate::expression::Expression;
use crate::settings::{Settings, expression_faults};

#[derive(Debug, Default)]
pub(crate) struct Filter {
    expression: Option<Expression>,
    output: Output<Payload>,
    otherwise: Output<Payload>,
}

impl Component for Filter {
    fn describe() -> Descriptor {
        Descriptor::new()
            .input("in")
            .output("out")
            .output("else")
            .field(ConfigField::new("expr", ConfigKind::String).required())
            .about("Publishes each message at out if an expression is true for it, and at else if it is false.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.expression = Some(Settings(setup.config()).expr()?);
        self.output = setup.output("out")?;
        self.otherwise = setup.output("else")?;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(expression) = &self.expression else {
            return Ok(());
        };
        for message in taken(invocation) {
            let found = evaluate(expression, invocation, &message)?;
            let Some(holds) = found.as_bool() else {
                let source = expression.source();
                let found = found.to_json()?;
                let message = format!("{source} gives {found}: a filter needs true or false");
                return Err(Failure::new(message));
            };
            let output = if holds { self.output } else { self.otherwise };
            let time = message.event_time();
            emit(invocation, output, message.into_payload(), time);
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

//! `windlass.clock`: publishes the lane's time.

use windlass_graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output, Setup,
};
use windlass_graph::model::{BoundaryRole, Config};
use windlass_value::Payload;

use crate::settings::{Settings, fixed};

#[derive(Debug, Default)]
pub(crate) struct Clock {
    unit: Unit,
    output: Output<Payload>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Unit {
    #[default]
    Nanos,
    Millis,
    Seconds,
}

const UNITS: [(&str, Unit); 3] = [
    ("ns", Unit::Nanos),
    ("ms", Unit::Millis),
    ("seconds", Unit::Seconds),
];

impl Component for Clock {
    fn describe() -> Descriptor {
        Descriptor::new()
            .output("out")
            .boundary(BoundaryRole::Input)
            .field(ConfigField::new("format", ConfigKind::String).one_of(UNITS.map(|unit| unit.0)))
            .about("Publishes the time of its lane.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.unit = Settings(setup.config()).choice("format", &UNITS)?;
        self.output = setup.output("out")?;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let now = i64::try_from(invocation.now()).unwrap_or(i64::MAX);
        let time = match self.unit {
            Unit::Nanos => Payload::Int(now),
            Unit::Millis => Payload::Float(now as f64 / 1e6),
            Unit::Seconds => Payload::Float(now as f64 / 1e9),
        };
        invocation.publish_at(self.output, time, now);
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

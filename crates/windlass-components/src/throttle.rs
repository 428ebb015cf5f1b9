//! `windlass.throttle`: lets messages pass at most so often.

use std::time::Duration;

use windlass_graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output, Setup,
};
use windlass_graph::model::Config;
use windlass_value::Payload;

use crate::emit::{emit, taken};
use crate::settings::{MOST_MS, Settings};

#[derive(Debug, Default)]
pub(crate) struct Throttle {
    interval: Duration,
    /// When the next may pass.
    next: Option<u64>,
    output: Output<Payload>,
    dropped: Output<Payload>,
}

fn interval(config: &Config) -> Result<Duration, Failure> {
    let settings = Settings(config);
    match settings.has("min_interval_ms") {
        true => settings.millis("min_interval_ms", 0),
        false => Err(Failure::new("config.min_interval_ms is missing: add it")),
    }
}

impl Component for Throttle {
    fn describe() -> Descriptor {
        let interval = ConfigField::new("min_interval_ms", ConfigKind::Integer);
        Descriptor::new()
            .input("in")
            .output("out")
            .output("dropped")
            .field(interval.required().within(0.0, MOST_MS as f64))
            .about(
                "Lets a message pass if the last one passed long enough ago; others go to dropped.",
            )
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.interval = interval(setup.config())?;
        self.output = setup.output("out")?;
        self.dropped = setup.output("dropped")?;
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.next = None;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let now = invocation.now();
        for message in taken(invocation) {
            let passes = self.next.is_none_or(|next| now >= next);
            let output = if passes { self.output } else { self.dropped };
            if passes {
                let interval = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
                self.next = Some(now.saturating_add(interval));
            }
            let time = message.event_time();
            emit(invocation, output, message.into_payload(), time);
        }
        Ok(())
    }

    fn validate_config(&self, config: &Config) -> Result<(), Failure> {
        interval(config).map(drop)
    }

    fn reconfigure(&mut self, config: &Config) -> Result<(), Failure> {
        self.interval = interval(config)?;
        Ok(())
    }
}

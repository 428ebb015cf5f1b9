//! `windlass.log`: shows what goes by.

use std::io::Write as _;

use windlass_graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output, Setup,
};
use windlass_graph::model::Config;
use windlass_value::Payload;

use crate::emit::{emit, taken};
use crate::settings::Settings;

#[derive(Debug, Default)]
pub(crate) struct Log {
    style: Style,
    output: Output<Payload>,
}

#[derive(Debug, Clone, Default)]
struct Style {
    level: Level,
    prefix: String,
    target: Target,
}

/// How much something matters.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Level {
    Trace,
    Debug,
    #[default]
    Info,
    Warn,
    Error,
}

#[derive(Debug, Clone, Copy, Default)]
enum Target {
    #[default]
    Stderr,
    Tracing,
}

/// The first is what it is unless one says otherwise.
pub(crate) const LEVELS: [(&str, Level); 5] = [
    ("info", Level::Info),
    ("trace", Level::Trace),
    ("debug", Level::Debug),
    ("warn", Level::Warn),
    ("error", Level::Error),
];
const TARGETS: [(&str, Target); 2] = [("stderr", Target::Stderr), ("tracing", Target::Tracing)];
/// How much of a message is shown.
const SHOWN: usize = 4096;

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }

    /// Emits an event of `tracing`.
    pub(crate) fn log(self, component: &str, text: &str) {
        macro_rules! event {
            ($level:ident) => {
                tracing::$level!(target: "windlass::graph", component, "{text}")
            };
        }
        match self {
            Level::Trace => event!(trace),
            Level::Debug => event!(debug),
            Level::Info => event!(info),
            Level::Warn => event!(warn),
            Level::Error => event!(error),
        }
    }
}

impl Style {
    fn read(config: &Config) -> Result<Style, Failure> {
        let settings = Settings(config);
        Ok(Style {
            level: settings.choice("level", &LEVELS)?,
            prefix: settings.text("prefix")?.unwrap_or_default().to_owned(),
            target: settings.choice("to", &TARGETS)?,
        })
    }

    fn show(&self, component: &str, payload: &Payload) {
        let text = match payload.as_str() {
            Some(text) => text.to_owned(),
            None => match payload.to_json() {
                Ok(json) => json.to_string(),
                Err(_) => format!("{payload:?}"),
            },
        };
        let mut text: String = text.chars().take(SHOWN).collect();
        text.insert_str(0, &self.prefix);
        match self.target {
            Target::Tracing => self.level.log(component, &text),
            Target::Stderr => {
                let level = self.level.name();
                // Standard error may be closed, and that is all right.
                let _ = writeln!(std::io::stderr().lock(), "{level} {component}: {text}");
            }
        }
    }
}

impl Component for Log {
    fn describe() -> Descriptor {
        let text = |name| ConfigField::new(name, ConfigKind::String);
        Descriptor::new()
            .input("in")
            .output("out")
            .field(text("level").one_of(LEVELS.map(|level| level.0)))
            .field(text("prefix"))
            .field(text("to").one_of(TARGETS.map(|target| target.0)))
            .about("Shows each message to people, and publishes it.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.style = Style::read(setup.config())?;
        self.output = setup.output("out")?;
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        for message in taken(invocation) {
            self.style.show(invocation.component(), message.payload());
            let time = message.event_time();
            emit(invocation, self.output, message.into_payload(), time);
        }
        Ok(())
    }

    fn validate_config(&self, config: &Config) -> Result<(), Failure> {
        Style::read(config).map(drop)
    }

    fn reconfigure(&mut self, config: &Config) -> Result<(), Failure> {
        self.style = Style::read(config)?;
        Ok(())
    }
}

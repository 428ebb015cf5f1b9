//! `windlass.replay`: publishes what a file says, when the lane's clock gets there.

use windlass_graph::Payload;
use windlass_graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output, Setup,
};
use windlass_graph::model::Config;

use super::reader::Reader;
use super::{line_bytes, line_bytes_of};
use crate::format::refused;
use crate::settings::{Settings, fixed};

#[derive(Debug, Default)]
pub(crate) struct Replay {
    path: String,
    at: String,
    most: usize,
    reader: Option<Reader>,
    next: Option<Due>,
    output: Output<Payload>,
}

/// What is published next, and when.
#[derive(Debug)]
struct Due {
    at: u64,
    payload: Payload,
}

impl Replay {
    /// Reads the next record, if none waits. False at the end.
    fn look_ahead(&mut self) -> Result<bool, Failure> {
        let Some(reader) = &mut self.reader else {
            return Ok(false);
        };
        while self.next.is_none() {
            let Some((number, line)) = reader.next()? else {
                return Ok(false);
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let due = due(&line, &self.at).map_err(|failure| reader.at(number, &failure))?;
            self.next = Some(due);
        }
        Ok(true)
    }
}

/// What a line says: its `value`, or all of it if there is none.
fn due(line: &[u8], field: &str) -> Result<Due, Failure> {
    let value: Payload = serde_json::from_slice(line)
        .map_err(|error| refused(line, &format!("is not JSON: {error}")))?;
    let at = value.get(field).and_then(Payload::as_f64);
    let at = at.filter(|at| (0.0..1e12).contains(at));
    let Some(at) = at else {
        let what = format!("has no field {field} with milliseconds of 0 or more");
        return Err(refused(line, &what));
    };
    let payload = value.get("value").cloned().unwrap_or(value);
    Ok(Due {
        at: (at * 1e6).round() as u64,
        payload,
    })
}

impl Component for Replay {
    fn describe() -> Descriptor {
        super::source(
            "Publishes the records of a file when the clock of its lane reaches their time.",
        )
        .field(ConfigField::new("at", ConfigKind::String))
        .field(line_bytes())
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        self.path = settings.demand("path")?.to_owned();
        self.at = settings.text("at")?.unwrap_or("at_ms").to_owned();
        self.most = line_bytes_of(settings)?;
        self.output = setup.output("out")?;
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.reader = Some(Reader::open(&self.path, self.most)?);
        self.next = None;
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.activate()
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let now = invocation.now();
        while self.look_ahead()? {
            let Some(due) = self.next.take_if(|due| due.at <= now) else {
                return Ok(());
            };
            let time = i64::try_from(due.at).unwrap_or(i64::MAX);
            if !invocation.publish_at(self.output, due.payload.clone(), time) {
                self.next = Some(due);
                return Ok(());
            }
        }
        invocation.finish();
        Ok(())
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.reader = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

//! `windlass.replay`: publishes what a file says, when the lane's clock gets there.

use windlass_graph::component::{ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output};
use windlass_value::Payload;

use super::reader::Reader;
use super::source::FileReader;
use super::{line_bytes, line_bytes_of};
use crate::format::refused;
use crate::settings::Settings;

/// Publishes the records of a file when their time has come.
#[derive(Debug, Default)]
pub(crate) struct ReplayReader {
    /// The field with the time.
    at: String,
    most: usize,
    next: Option<DueRecord>,
}

/// What is published next, and when.
#[derive(Debug)]
struct DueRecord {
    at: u64,
    payload: Payload,
}

impl ReplayReader {
    pub(crate) fn describe() -> Descriptor {
        super::source(
            "Publishes the records of a file when the clock of its lane reaches their time.",
        )
        .field(ConfigField::new("at", ConfigKind::String))
        .field(line_bytes())
    }

    /// Reads the next record, unless one waits. Returns false at the end.
    fn look_ahead(&mut self, reader: &mut Reader) -> Result<bool, Failure> {
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
fn due(line: &[u8], field: &str) -> Result<DueRecord, Failure> {
    let value: Payload = serde_json::from_slice(line)
        .map_err(|error| refused(line, &format!("is not JSON: {error}")))?;
    let at = value.get(field).and_then(Payload::as_f64);
    let at = at.filter(|at| (0.0..1e12).contains(at));
    let Some(at) = at else {
        let what = format!("has no field {field} with milliseconds of 0 or more");
        return Err(refused(line, &what));
    };
    let payload = value.get("value").cloned().unwrap_or(value);
    Ok(DueRecord {
        at: (at * 1e6).round() as u64,
        payload,
    })
}

impl FileReader for ReplayReader {
    type Open = Reader;

    fn configure(&mut self, settings: Settings<'_>) -> Result<(), Failure> {
        self.at = settings.text("at")?.unwrap_or("at_ms").to_owned();
        self.most = line_bytes_of(settings)?;
        Ok(())
    }

    fn open(&mut self, path: &str) -> Result<Reader, Failure> {
        let reader = Reader::open(path, self.most)?;
        self.next = None;
        Ok(reader)
    }

    fn publish(
        &mut self,
        file: &mut Reader,
        invocation: &mut Invocation<'_>,
        output: Output<Payload>,
    ) -> Result<(), Failure> {
        let now = invocation.now();
        while self.look_ahead(file)? {
            let Some(due) = self.next.take_if(|due| due.at <= now) else {
                return Ok(());
            };
            let time = i64::try_from(due.at).unwrap_or(i64::MAX);
            if !invocation.publish_at(output, due.payload.clone(), time) {
                self.next = Some(due);
                return Ok(());
            }
        }
        invocation.finish();
        Ok(())
    }
}

//! `windlass.lines.source`, `windlass.jsonl.source` and their sinks.

use windlass_graph::Payload;
use windlass_graph::component::{Component, Descriptor, Failure, Invocation, Output, Setup};
use windlass_graph::model::Config;

use super::reader::Reader;
use super::writer::{FileTarget, Writer};
use super::{line_bytes, line_bytes_of, records, records_of};
use crate::format::{Format, encode_all};
use crate::records::{Next, Records};
use crate::settings::{Settings, fixed};

/// Publishes the lines of a file.
#[derive(Debug)]
pub(crate) struct Source {
    format: Format,
    path: String,
    records: Records<Payload>,
    most: usize,
    reader: Option<Reader>,
    output: Output<Payload>,
}

impl Source {
    pub(crate) fn new(format: Format) -> Source {
        Source {
            format,
            path: String::new(),
            records: Records::default(),
            most: 0,
            reader: None,
            output: Output::default(),
        }
    }

    pub(crate) fn describe(format: Format) -> Descriptor {
        let about = match format {
            Format::Json => "Publishes the values of a file that has one JSON value in each line.",
            _ => "Publishes the lines of a file as texts.",
        };
        super::source(about).field(records()).field(line_bytes())
    }
}

impl Component for Source {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        self.path = settings.demand("path")?.to_owned();
        self.records = Records::new(records_of(settings)?);
        self.most = line_bytes_of(settings)?;
        self.output = setup.output("out")?;
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.reader = Some(Reader::open(&self.path, self.most)?);
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.activate()
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        let format = self.format;
        self.records
            .publish(invocation, self.output, || next(reader, format))?;
        if self.records.is_settled() && reader.is_at_end()? {
            invocation.finish();
        }
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

/// The next message; an empty line between JSON values says nothing.
fn next(reader: &mut Reader, format: Format) -> Result<Next<Payload>, Failure> {
    while let Some((number, line)) = reader.next()? {
        if format != Format::Json || !line.iter().all(u8::is_ascii_whitespace) {
            let payload = format.decode(&line);
            let payload = payload.map_err(|failure| reader.at(number, &failure))?;
            return Ok(Next::One(payload));
        }
    }
    Ok(Next::End)
}

/// Writes messages to a file, each in a line.
#[derive(Debug)]
pub(crate) struct Sink {
    format: Format,
    target: FileTarget,
    writer: Option<Writer>,
}

impl Sink {
    pub(crate) fn new(format: Format) -> Sink {
        Sink {
            format,
            target: FileTarget::default(),
            writer: None,
        }
    }

    pub(crate) fn describe(format: Format) -> Descriptor {
        super::sink(match format {
            Format::Json => "Writes each message to a file, as JSON in a line.",
            _ => "Writes each message to a file, as a line.",
        })
    }
}

impl Component for Sink {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        self.target = FileTarget::read(Settings(setup.config()))?;
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.writer = Some(self.target.open()?);
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let (lines, encoded) = encode_all(invocation, |payload, line| {
            self.format.encode_line(payload, line)
        });
        writer.write(&lines.concat())?;
        encoded
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.writer = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

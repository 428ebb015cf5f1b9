//! `windlass.lines.source`, `windlass.jsonl.source` and their sinks.

use windlass_graph::component::{Descriptor, Failure, Invocation, Output};
use windlass_value::Payload;

use super::reader::Reader;
use super::sink::FileEncoder;
use super::source::FileReader;
use super::{line_bytes, line_bytes_of, records, records_of};
use crate::format::Format;
use crate::records::{NextRecord, Records};
use crate::settings::Settings;

/// Publishes the lines of a file.
#[derive(Debug)]
pub(crate) struct LineReader {
    format: Format,
    records: Records<Payload>,
    most: usize,
}

impl LineReader {
    pub(crate) fn new(format: Format) -> LineReader {
        LineReader {
            format,
            records: Records::default(),
            most: 0,
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

impl FileReader for LineReader {
    type Open = Reader;

    fn configure(&mut self, settings: Settings<'_>) -> Result<(), Failure> {
        self.records = Records::new(records_of(settings)?);
        self.most = line_bytes_of(settings)?;
        Ok(())
    }

    fn open(&mut self, path: &str) -> Result<Reader, Failure> {
        Reader::open(path, self.most)
    }

    fn publish(
        &mut self,
        file: &mut Reader,
        invocation: &mut Invocation<'_>,
        output: Output<Payload>,
    ) -> Result<(), Failure> {
        let format = self.format;
        self.records
            .publish(invocation, output, || next(file, format))?;
        if self.records.is_settled() && file.is_at_end()? {
            invocation.finish();
        }
        Ok(())
    }
}

/// Returns the next message. An empty line between JSON values is skipped.
fn next(reader: &mut Reader, format: Format) -> Result<NextRecord<Payload>, Failure> {
    while let Some((number, line)) = reader.next()? {
        if format != Format::Json || !line.iter().all(u8::is_ascii_whitespace) {
            let payload = format.decode(&line);
            let payload = payload.map_err(|failure| reader.at(number, &failure))?;
            return Ok(NextRecord::One(payload));
        }
    }
    Ok(NextRecord::End)
}

/// Writes messages to a file, each in a line.
#[derive(Debug)]
pub(crate) struct LineEncoder(pub(crate) Format);

impl LineEncoder {
    pub(crate) fn describe(format: Format) -> Descriptor {
        super::sink(match format {
            Format::Json => "Writes each message to a file, as JSON in a line.",
            _ => "Writes each message to a file, as a line.",
        })
    }
}

impl FileEncoder for LineEncoder {
    fn encode(&mut self, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure> {
        self.0.encode_line(payload, to)
    }
}

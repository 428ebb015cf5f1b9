//! `windlass.csv.source` and `windlass.csv.sink`.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use serde_json::Value;
use windlass_graph::component::{ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output};
use windlass_value::Payload;

use super::sink::FileEncoder;
use super::source::FileReader;
use super::{LINE_BYTES, MOST_LINE_BYTES, records, records_of};
use crate::records::{NextRecord, Records};
use crate::settings::{Settings, about_file};

/// How much the reader holds at once.
const BUFFER: usize = 64 << 10;

/// Publishes the records of a CSV file.
#[derive(Debug, Default)]
pub(crate) struct CsvReader {
    style: Style,
    typed: bool,
    records: Records<Payload>,
    most: usize,
}

/// Writes records to a CSV file.
#[derive(Debug, Default)]
pub(crate) struct CsvEncoder {
    style: Style,
    columns: Option<Vec<String>>,
    /// True until the first record of an empty file is written: the header comes before it.
    is_first: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Style {
    header: bool,
    delimiter: u8,
}

impl Style {
    fn read(settings: Settings<'_>) -> Result<Style, Failure> {
        let delimiter = settings.text("delimiter")?.unwrap_or(",");
        let &[delimiter] = delimiter.as_bytes() else {
            return Err(Failure::new(format!(
                "config.delimiter is {delimiter:?}: it has to be one ASCII character"
            )));
        };
        if matches!(delimiter, b'"' | b'\n' | b'\r') {
            return Err(Failure::new(
                "config.delimiter can be neither a quote nor the end of a line",
            ));
        }
        Ok(Style {
            header: settings.flag("header", true)?,
            delimiter,
        })
    }

    fn fields(descriptor: Descriptor) -> Descriptor {
        descriptor
            .field(ConfigField::new("header", ConfigKind::Bool))
            .field(ConfigField::new("delimiter", ConfigKind::String))
    }
}

/// A file that gives no more than so many bytes for one record.
#[derive(Debug)]
struct Bounded {
    file: File,
    left: usize,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let left = self.left.checked_sub(read);
        self.left = left.ok_or_else(|| {
            io::Error::other(
                "a record is longer than config.max_record_bytes; is a quote not closed?",
            )
        })?;
        Ok(read)
    }
}

/// The records of a file, with one ahead.
#[derive(Debug)]
pub(crate) struct OpenCsv {
    csv: csv::Reader<Bounded>,
    path: String,
    most: usize,
    names: Option<Vec<Arc<str>>>,
    ahead: StringRecord,
}

impl OpenCsv {
    fn open(path: &str, style: Style, most: usize) -> Result<OpenCsv, Failure> {
        let file = File::open(path).map_err(|error| about_file("open", path, &error))?;
        let csv = ReaderBuilder::new()
            .has_headers(style.header)
            .delimiter(style.delimiter)
            .buffer_capacity(BUFFER)
            .from_reader(Bounded {
                file,
                left: most.saturating_add(BUFFER),
            });
        let mut reader = OpenCsv {
            csv,
            path: path.to_owned(),
            most,
            names: None,
            ahead: StringRecord::new(),
        };
        if style.header {
            let names = reader.csv.headers().cloned();
            let names = names.map_err(|error| reader.failed(&error))?;
            reader.names = Some(names.iter().map(Arc::from).collect());
        }
        Ok(reader)
    }

    fn failed(&self, error: &csv::Error) -> Failure {
        Failure::new(format!("{}: {error}", self.path))
    }

    /// The next record; none at the end.
    fn next(&mut self) -> Result<Option<StringRecord>, Failure> {
        self.csv.get_mut().left = self.most.saturating_add(BUFFER);
        let read = self.csv.read_record(&mut self.ahead);
        match read.map_err(|error| self.failed(&error))? {
            true => Ok(Some(std::mem::take(&mut self.ahead))),
            false => Ok(None),
        }
    }

    fn value(&self, record: &StringRecord, typed: bool) -> Payload {
        let read = |field: &str| {
            if typed {
                recognised(field)
            } else {
                field.into()
            }
        };
        match &self.names {
            Some(names) => {
                let fields = names.iter().cloned().zip(record.iter().map(read));
                Payload::Map(fields.collect())
            }
            None => Payload::List(record.iter().map(read).collect()),
        }
    }
}

/// What a field says: a number, true, false, nothing, or else text. A number that would not come
/// back as it was written (0042, or more digits than 64 bits hold) stays text.
fn recognised(field: &str) -> Payload {
    if field.is_empty() {
        return Payload::Nil;
    }
    let read: Option<Value> = serde_json::from_str(field).ok();
    match read {
        Some(Value::Bool(flag)) => flag.into(),
        Some(Value::Number(number)) => match number.as_i64() {
            Some(whole) => whole.into(),
            None if field.contains(['.', 'e', 'E']) => {
                number.as_f64().map_or(field.into(), Payload::from)
            }
            None => field.into(),
        },
        _ => field.into(),
    }
}

impl CsvReader {
    pub(crate) fn describe() -> Descriptor {
        let about = "Publishes the records of a CSV file: objects by its header, or lists.";
        let most = ConfigField::new("max_record_bytes", ConfigKind::Integer);
        Style::fields(super::source(about))
            .field(ConfigField::new("typed", ConfigKind::Bool))
            .field(records())
            .field(most.within(1.0, MOST_LINE_BYTES as f64))
    }
}

impl FileReader for CsvReader {
    type Open = OpenCsv;

    fn configure(&mut self, settings: Settings<'_>) -> Result<(), Failure> {
        self.style = Style::read(settings)?;
        self.typed = settings.flag("typed", true)?;
        self.records = Records::new(records_of(settings)?);
        self.most = settings.count("max_record_bytes", LINE_BYTES, MOST_LINE_BYTES)?;
        Ok(())
    }

    fn open(&mut self, path: &str) -> Result<OpenCsv, Failure> {
        OpenCsv::open(path, self.style, self.most)
    }

    fn publish(
        &mut self,
        file: &mut OpenCsv,
        invocation: &mut Invocation<'_>,
        output: Output<Payload>,
    ) -> Result<(), Failure> {
        let typed = self.typed;
        let next = || match file.next()? {
            Some(record) => Ok(NextRecord::One(file.value(&record, typed))),
            None => Ok(NextRecord::End),
        };
        self.records.publish(invocation, output, next).map(drop)
    }
}

impl CsvEncoder {
    pub(crate) fn describe() -> Descriptor {
        let about = "Writes each message to a CSV file, as a record.";
        Style::fields(super::sink(about)).field(ConfigField::new("columns", ConfigKind::List))
    }

    /// Returns the fields of a record, in the order of the columns.
    fn row(&mut self, record: &Payload) -> Result<Vec<String>, Failure> {
        match record {
            Payload::Map(object) => {
                let of_first = || object.keys().map(|key| (**key).to_owned()).collect();
                let columns = self.columns.get_or_insert_with(of_first);
                if let Some(other) = object
                    .keys()
                    .find(|key| !columns.iter().any(|name| **name == ***key))
                {
                    return Err(Failure::new(format!(
                        "the record has a field {other:?}, and there is no such column: add it to config.columns"
                    )));
                }
                let fields = columns.iter().map(|name| object.get(name.as_str()));
                fields
                    .map(|field| field.map_or(Ok(String::new()), shown))
                    .collect()
            }
            Payload::List(items) => match &self.columns {
                Some(columns) if columns.len() != items.len() => Err(Failure::new(format!(
                    "the record has {} fields, and there are {} columns",
                    items.len(),
                    columns.len()
                ))),
                _ => items.iter().map(shown).collect(),
            },
            _ => Err(Failure::new(
                "a record has to be an object or a list: put a windlass.map before",
            )),
        }
    }

    fn record(&mut self, record: &Payload) -> Result<Vec<u8>, Failure> {
        let row = self.row(record)?;
        let mut writer = WriterBuilder::new()
            .delimiter(self.style.delimiter)
            .from_writer(Vec::new());
        if std::mem::take(&mut self.is_first)
            && self.style.header
            && let Some(columns) = &self.columns
        {
            writer.write_record(columns)?;
        }
        writer.write_record(&row)?;
        Ok(writer.into_inner().map_err(|error| error.into_error())?)
    }
}

/// A field as it is written.
fn shown(value: &Payload) -> Result<String, Failure> {
    Ok(match value {
        Payload::Nil => String::new(),
        Payload::Text(text) => (**text).to_owned(),
        other => other.to_json()?.to_string(),
    })
}

impl FileEncoder for CsvEncoder {
    fn configure(&mut self, settings: Settings<'_>) -> Result<(), Failure> {
        self.style = Style::read(settings)?;
        self.columns = settings.texts("columns")?;
        if self.columns.as_ref().is_some_and(Vec::is_empty) {
            return Err(Failure::new(
                "config.columns is empty: name one, or leave it out",
            ));
        }
        Ok(())
    }

    fn begin(&mut self, is_empty: bool) {
        // A file that goes on has its header already.
        self.is_first = is_empty;
    }

    fn encode(&mut self, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure> {
        to.extend(self.record(payload)?);
        Ok(())
    }
}

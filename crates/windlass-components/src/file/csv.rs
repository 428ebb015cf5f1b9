//! `windlass.csv.source` and `windlass.csv.sink`.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use csv::{ReaderBuilder, StringRecord, WriterBuilder};
use serde_json::Value;
use windlass_graph::Payload;
use windlass_graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output, Setup,
};
use windlass_graph::model::Config;

use super::writer::{FileTarget, Writer};
use super::{LINE_BYTES, MOST_LINE_BYTES, records, records_of};
use crate::format::encode_all;
use crate::records::{Next, Records};
use crate::settings::{Settings, about_file, fixed};

/// How much the reader holds at once.
const BUFFER: usize = 64 << 10;

/// Publishes the records of a CSV file.
#[derive(Debug, Default)]
pub(crate) struct Source {
    style: Style,
    typed: bool,
    records: Records<Payload>,
    path: String,
    most: usize,
    reader: Option<Reader>,
    output: Output<Payload>,
}

/// Writes records to a CSV file.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    style: Style,
    target: FileTarget,
    columns: Option<Vec<String>>,
    /// Whether the next record is the first.
    first: bool,
    writer: Option<Writer>,
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
struct Reader {
    csv: csv::Reader<Bounded>,
    path: String,
    most: usize,
    names: Option<Vec<Arc<str>>>,
    ahead: StringRecord,
}

impl Reader {
    fn open(path: &str, style: Style, most: usize) -> Result<Reader, Failure> {
        let file = File::open(path).map_err(|error| about_file("open", path, &error))?;
        let csv = ReaderBuilder::new()
            .has_headers(style.header)
            .delimiter(style.delimiter)
            .buffer_capacity(BUFFER)
            .from_reader(Bounded {
                file,
                left: most.saturating_add(BUFFER),
            });
        let mut reader = Reader {
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

/// What a field says: a number, true, false, nothing, or else text. A number that would not come back as it was
/// written (0042, or more digits than 64 bits hold) stays text.
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

impl Component for Source {
    fn describe() -> Descriptor {
        let about = "Publishes the records of a CSV file: objects by its header, or lists.";
        let most = ConfigField::new("max_record_bytes", ConfigKind::Integer);
        Style::fields(super::source(about))
            .field(ConfigField::new("typed", ConfigKind::Bool))
            .field(records())
            .field(most.within(1.0, MOST_LINE_BYTES as f64))
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        self.path = settings.demand("path")?.to_owned();
        self.style = Style::read(settings)?;
        self.typed = settings.flag("typed", true)?;
        self.records = Records::new(records_of(settings)?);
        self.most = settings.count("max_record_bytes", LINE_BYTES, MOST_LINE_BYTES)?;
        self.output = setup.output("out")?;
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.reader = Some(Reader::open(&self.path, self.style, self.most)?);
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.activate()
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        let typed = self.typed;
        let next = || match reader.next()? {
            Some(record) => {
                let value = reader.value(&record, typed);
                Ok(Next::One(value))
            }
            None => Ok(Next::End),
        };
        self.records
            .publish(invocation, self.output, next)
            .map(drop)
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.reader = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

impl Sink {
    /// The fields of a record, in the order of the columns.
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

    fn encode(&mut self, record: &Payload) -> Result<Vec<u8>, Failure> {
        let row = self.row(record)?;
        let mut writer = WriterBuilder::new()
            .delimiter(self.style.delimiter)
            .from_writer(Vec::new());
        if std::mem::take(&mut self.first)
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

impl Component for Sink {
    fn describe() -> Descriptor {
        let about = "Writes each message to a CSV file, as a record.";
        Style::fields(super::sink(about)).field(ConfigField::new("columns", ConfigKind::List))
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        self.target = FileTarget::read(settings)?;
        self.style = Style::read(settings)?;
        self.columns = settings.texts("columns")?;
        if self.columns.as_ref().is_some_and(Vec::is_empty) {
            return Err(Failure::new(
                "config.columns is empty: name one, or leave it out",
            ));
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        let writer = self.target.open()?;
        // A file that goes on has its header already.
        self.first = writer.is_empty()?;
        self.writer = Some(writer);
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let (records, encoded) = encode_all(invocation, |payload, bytes| {
            bytes.extend(self.encode(payload)?);
            Ok(())
        });
        if let Some(writer) = &mut self.writer {
            writer.write(&records.concat())?;
        }
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

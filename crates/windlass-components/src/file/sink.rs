//! What all sinks that write a file have in common: its path, opening it, and whole records.

use windlass_graph::component::{Component, Failure, Invocation, Setup};
use windlass_graph::model::Config;
use windlass_value::Payload;

use super::writer::{FileTarget, Writer};
use crate::format::encode_all;
use crate::settings::{Settings, fixed};

/// How messages are written to one kind of file.
pub(crate) trait FileEncoder: Send + 'static {
    /// Reads the settings beyond the path.
    fn configure(&mut self, _settings: Settings<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// The file was opened, and has something in it or not.
    fn begin(&mut self, _is_empty: bool) {}

    /// Appends a message as it is written.
    fn encode(&mut self, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure>;
}

/// Writes messages to a file.
#[derive(Debug)]
pub(crate) struct FileSink<E> {
    encoder: E,
    target: FileTarget,
    writer: Option<Writer>,
}

impl<E: FileEncoder> FileSink<E> {
    pub(crate) fn new(encoder: E) -> FileSink<E> {
        FileSink {
            encoder,
            target: FileTarget::default(),
            writer: None,
        }
    }
}

impl<E: FileEncoder> Component for FileSink<E> {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        self.target = FileTarget::read(settings)?;
        self.encoder.configure(settings)
    }

    fn activate(&mut self) -> Result<(), Failure> {
        let writer = self.target.open()?;
        self.encoder.begin(writer.is_empty()?);
        self.writer = Some(writer);
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let (records, encoded) = encode_all(invocation, |payload, bytes| {
            self.encoder.encode(payload, bytes)
        });
        writer.write(&records.concat())?;
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

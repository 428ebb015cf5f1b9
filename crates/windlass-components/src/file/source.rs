//! What all sources that read a file have in common: its path, opening it, and an output.

use windlass_graph::component::{Component, Failure, Invocation, Output, Setup};
use windlass_graph::model::Config;
use windlass_value::Payload;

use crate::settings::{Settings, fixed};

/// How one kind of file is read and published.
pub(crate) trait FileReader: Send + 'static {
    /// An open file.
    type Open: Send;

    /// Reads the settings beyond the path.
    fn configure(&mut self, settings: Settings<'_>) -> Result<(), Failure>;

    /// Opens the file at its beginning, also when it was read before.
    fn open(&mut self, path: &str) -> Result<Self::Open, Failure>;

    /// Publishes the next records; finishes the source at the end of the file.
    fn publish(
        &mut self,
        file: &mut Self::Open,
        invocation: &mut Invocation<'_>,
        output: Output<Payload>,
    ) -> Result<(), Failure>;
}

/// Publishes the records of a file.
#[derive(Debug)]
pub(crate) struct FileSource<R: FileReader> {
    reader: R,
    path: String,
    open: Option<R::Open>,
    output: Output<Payload>,
}

impl<R: FileReader> FileSource<R> {
    pub(crate) fn new(reader: R) -> FileSource<R> {
        FileSource {
            reader,
            path: String::new(),
            open: None,
            output: Output::default(),
        }
    }
}

impl<R: FileReader> Component for FileSource<R> {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        self.path = settings.demand("path")?.to_owned();
        self.reader.configure(settings)?;
        self.output = setup.output("out")?;
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        self.open = Some(self.reader.open(&self.path)?);
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.activate()
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        match &mut self.open {
            Some(file) => self.reader.publish(file, invocation, self.output),
            None => Ok(()),
        }
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.open = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

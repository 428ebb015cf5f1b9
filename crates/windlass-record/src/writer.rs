//! Writing a recording.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::digest::Digest;
use crate::error::RecordingError;
use crate::format::{First, Format, SUM_FIELD};

/// A recording that is being written.
#[derive(Debug)]
pub struct Writer<F> {
    path: PathBuf,
    file: BufWriter<File>,
    /// Of the lines without the header, which may differ between two equal runs.
    digest: Digest,
    /// Of the header and the lines, for the checksums.
    sums: Digest,
    /// How many bytes may still be written.
    left: u64,
    is_full: bool,
    format: PhantomData<fn() -> F>,
}

impl<F: Format> Writer<F> {
    /// Creates the file, which has at most `limit` bytes, and writes its first line.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn create(
        path: &Path,
        header: &F::Header,
        limit: u64,
    ) -> Result<Writer<F>, RecordingError> {
        let file = File::create(path).map_err(|error| RecordingError::file(path, &error))?;
        let mut writer = Writer {
            path: path.to_owned(),
            file: BufWriter::new(file),
            digest: Digest::default(),
            sums: Digest::default(),
            left: limit,
            is_full: false,
            format: PhantomData,
        };
        let first = First {
            windlass_recording: F::NAME.to_owned(),
            version: F::VERSION,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            header,
        };
        let text = to_text(&first, "the header")?;
        writer.sums.bytes(text.as_bytes());
        writer.text(text.as_bytes())?;
        writer.flush()?;
        Ok(writer)
    }

    /// Writes a line. Once the recording is as large as it may be, it writes nothing more.
    ///
    /// # Errors
    /// If the line cannot be written as JSON, or not to the file.
    pub fn line(&mut self, line: &F::Line) -> Result<(), RecordingError> {
        let text = to_text(line, F::origin(line))?;
        self.summed(text)
    }

    fn summed(&mut self, mut text: String) -> Result<(), RecordingError> {
        self.digest.bytes(text.as_bytes());
        self.sums.bytes(text.as_bytes());
        text.truncate(text.len() - "}".len());
        text.push_str(SUM_FIELD);
        text.push_str(&self.sums.sum());
        text.push_str("\"}");
        self.text(text.as_bytes())
    }

    fn text(&mut self, text: &[u8]) -> Result<(), RecordingError> {
        if self.is_full {
            return Ok(());
        }
        let Some(left) = self.left.checked_sub(text.len() as u64 + 1) else {
            self.is_full = true;
            return self.flush();
        };
        self.left = left;
        let written = self.file.write_all(text);
        let written = written.and_then(|()| self.file.write_all(b"\n"));
        written.map_err(|error| RecordingError::file(&self.path, &error))
    }

    /// Hands everything so far to the system, so that it survives the end of the program.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        let flushed = self.file.flush();
        flushed.map_err(|error| RecordingError::file(&self.path, &error))
    }

    /// Returns the hash of all lines so far.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Writes the last line. Returns false if something was left out because the recording was as
    /// large as it may be.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self, end: &F::End) -> Result<bool, RecordingError> {
        #[derive(Serialize)]
        struct Last<'a, E> {
            end: &'a E,
        }
        let text = to_text(&Last { end }, "the end")?;
        self.summed(text)?;
        self.flush()?;
        Ok(!self.is_full)
    }
}

/// Returns the text of a line.
pub(crate) fn to_text<T: Serialize>(
    line: &T,
    origin: &'static str,
) -> Result<String, RecordingError> {
    serde_json::to_string(line).map_err(|error| RecordingError::Unwritable {
        origin,
        problem: error.to_string(),
    })
}

//! Writing a recording.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::line::Line;
use super::reading::VERSION;
use crate::error::RecordingError;

/// A recording that is being written.
pub(crate) struct Writing {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Writing {
    pub(crate) fn create(
        path: PathBuf,
        workers: usize,
        slice_count: u64,
    ) -> Result<Writing, RecordingError> {
        let file = File::create(&path).map_err(|error| failed(&path, &error))?;
        let mut writing = Writing {
            path,
            file: BufWriter::new(file),
        };
        let header = json!({
            "windlass_vm_recording": VERSION,
            "workers": workers,
            "slice_count": slice_count,
        });
        writing.text(&header.to_string())?;
        writing.flush()?;
        Ok(writing)
    }

    pub(crate) fn line(&mut self, line: &Line) -> Result<(), RecordingError> {
        let place = match line {
            Line::Io { .. } => "what blocking work gave",
            Line::Input { .. } => "a message",
            _ => "what a guest was answered",
        };
        let text = line
            .to_text()
            .map_err(|_| RecordingError::Opaque { place })?;
        self.text(&text)
    }

    fn text(&mut self, text: &str) -> Result<(), RecordingError> {
        let written = writeln!(self.file, "{text}");
        written.map_err(|error| failed(&self.path, &error))
    }

    pub(crate) fn flush(&mut self) -> Result<(), RecordingError> {
        let flushed = self.file.flush();
        flushed.map_err(|error| failed(&self.path, &error))
    }
}

/// An error of a file.
pub(super) fn failed(path: &Path, error: &io::Error) -> RecordingError {
    RecordingError::File {
        path: path.to_owned(),
        kind: error.kind(),
        message: error.to_string(),
    }
}

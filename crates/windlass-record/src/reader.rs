//! Reading a recording.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::digest::Digest;
use crate::error::RecordingError;
use crate::format::{END_FIELD, First, Format, SUM_FIELD};

/// How much of a file that is no recording is shown.
const SHOWN: usize = 60;

/// A recording that was read.
#[derive(Debug, Clone)]
pub struct Recording<F: Format> {
    /// What the first line says.
    pub header: F::Header,
    /// What happened, in its order.
    pub lines: Vec<F::Line>,
    /// How it ended; none if the recording breaks off.
    pub end: Option<F::End>,
    file: PathBuf,
    build: String,
    edited_line: Option<usize>,
}

impl<F: Format> Recording<F> {
    /// Reads a recording, also one that breaks off.
    ///
    /// # Errors
    /// If the file cannot be read, or is no recording of this format and version.
    pub fn open(path: &Path) -> Result<Recording<F>, RecordingError> {
        let read = |error| RecordingError::file(path, &error);
        // As bytes: a line that was cut off may end within a character.
        let mut lines = BufReader::new(File::open(path).map_err(read)?).split(b'\n');
        let first = lines.next().transpose().map_err(read)?.unwrap_or_default();
        let mut digest = Digest::default();
        digest.bytes(&first);
        let first = read_first::<F>(path, &first)?;
        let mut recording = Recording {
            header: first.header,
            lines: Vec::new(),
            end: None,
            file: path.to_owned(),
            build: first.build,
            edited_line: None,
        };
        let mut broken: Option<RecordingError> = None;
        for (nth, line) in lines.enumerate() {
            // A line that follows shows that the broken one was not cut off.
            if let Some(error) = broken {
                return Err(error);
            }
            let (line, number) = (line.map_err(read)?, nth + 2);
            broken = recording.take(&line, number, &mut digest).err();
        }
        match broken {
            // What follows the end was not cut off.
            Some(error) if recording.is_complete() => Err(error),
            _ => Ok(recording),
        }
    }

    fn take(
        &mut self,
        line: &[u8],
        number: usize,
        digest: &mut Digest,
    ) -> Result<(), RecordingError> {
        let bad = |problem: String| RecordingError::BadLine {
            file: self.file.clone(),
            line: number,
            problem,
        };
        if self.end.is_some() {
            return Err(bad("a line follows the last line".to_owned()));
        }
        let line = std::str::from_utf8(line).map_err(|error| bad(error.to_string()))?;
        let (text, sum) = line
            .strip_suffix("\"}")
            .and_then(|line| line.rsplit_once(SUM_FIELD))
            .ok_or_else(|| bad("the line has no checksum".to_owned()))?;
        let text = format!("{text}}}");
        if text.starts_with(END_FIELD) {
            let last: Last<F::End> =
                serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
            self.end = Some(last.end);
        } else {
            let line = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
            self.lines.push(line);
        }
        digest.bytes(text.as_bytes());
        if self.edited_line.is_none() && sum != digest.sum() {
            self.edited_line = Some(number);
        }
        Ok(())
    }

    /// Returns the file that the recording was read from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the release of Windlass that wrote the recording.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Returns true if the last line is there.
    pub fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    /// Returns the number of the first line that was edited, from 1; the header is line 1.
    pub fn edited_line(&self) -> Option<usize> {
        self.edited_line
    }

    /// Returns the error that says that the recording breaks off.
    pub fn truncated(&self) -> RecordingError {
        RecordingError::Truncated {
            file: self.file.clone(),
            lines: self.lines.len() + 1,
        }
    }
}

#[derive(Deserialize)]
struct Last<E> {
    end: E,
}

fn read_first<F: Format>(path: &Path, line: &[u8]) -> Result<First<F::Header>, RecordingError> {
    let file = path.to_owned();
    let foreign = || {
        let shown = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN)]);
        RecordingError::Foreign {
            file: path.to_owned(),
            found: shown.chars().take(SHOWN).collect(),
        }
    };
    let first: Value = serde_json::from_slice(line).map_err(|_| foreign())?;
    let format = first.get("windlass_recording").ok_or_else(foreign)?;
    let version = first.get("version").unwrap_or(format).as_u64();
    let found = u32::try_from(version.unwrap_or(0)).unwrap_or(u32::MAX);
    // Recordings of the first versions have a number there, and nothing to tell their kinds apart.
    if let Some(name) = format.as_str()
        && name != F::NAME
    {
        return Err(RecordingError::OtherFormat {
            file,
            expected: F::NAME,
            found: name.to_owned(),
        });
    }
    if !format.is_string() || found != F::VERSION {
        let build = first.get("build").and_then(Value::as_str);
        return Err(RecordingError::OtherVersion {
            file,
            expected: F::VERSION,
            found,
            build: build.unwrap_or("before 0.1.0").to_owned(),
        });
    }
    serde_json::from_value(first).map_err(|error| RecordingError::BadLine {
        file,
        line: 1,
        problem: error.to_string(),
    })
}

//! Why a recording cannot be written, read or replayed.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::comparison::Difference;

/// The reason why a recording cannot be written, read or replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordingError {
    /// A file cannot be read or written.
    File {
        /// The file of the recording.
        file: PathBuf,
        /// The kind of the system's error.
        kind: io::ErrorKind,
        /// The system's words.
        message: String,
    },
    /// The file is no recording.
    Foreign {
        /// The file of the recording.
        file: PathBuf,
        /// The beginning of the file.
        found: String,
    },
    /// The file is a recording of something else.
    OtherFormat {
        /// The file of the recording.
        file: PathBuf,
        /// What was expected, for example `graph`.
        expected: &'static str,
        /// What the file says.
        found: String,
    },
    /// The file was written in another version of the format.
    OtherVersion {
        /// The file of the recording.
        file: PathBuf,
        /// The version that this program reads.
        expected: u32,
        /// The version of the file.
        found: u32,
        /// The release of Windlass that wrote the file.
        build: String,
    },
    /// A line is no line of a recording.
    BadLine {
        /// The file of the recording.
        file: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with the line.
        problem: String,
    },
    /// The recording breaks off: the program that wrote it was killed, the disk was full, or the
    /// recording was as large as it may be.
    Truncated {
        /// The file of the recording.
        file: PathBuf,
        /// How many whole lines the file has.
        lines: usize,
    },
    /// The replay did something else than was recorded.
    Diverged(Difference),
    /// The replay was stopped before its end, because its runtime or VM was.
    Stopped {
        /// The number of the line that came next, from 1.
        line: usize,
    },
    /// A value cannot be recorded.
    Unwritable {
        /// What the value came from.
        origin: &'static str,
        /// What is wrong with the value.
        problem: String,
    },
}

impl RecordingError {
    pub(crate) fn file(file: &Path, error: &io::Error) -> RecordingError {
        RecordingError::File {
            file: file.to_owned(),
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::File { file, message, .. } => {
                write!(f, "{}: {message}", file.display())
            }
            RecordingError::Foreign { file, found } => write!(
                f,
                "{} is no recording: it begins with {found:?}; name what was given to record",
                file.display()
            ),
            RecordingError::OtherFormat {
                file,
                expected,
                found,
            } => write!(
                f,
                "{} is a recording of a {found}, not of a {expected}",
                file.display()
            ),
            RecordingError::OtherVersion {
                file,
                expected,
                found,
                build,
            } => write!(
                f,
                "{} is a recording of version {found}, written by Windlass {build}, and this program reads version {expected}: record again",
                file.display()
            ),
            RecordingError::BadLine {
                file,
                line,
                problem,
            } => write!(f, "{}:{line}: {problem}", file.display()),
            RecordingError::Truncated { file, lines } => write!(
                f,
                "{} breaks off after line {lines}: the program that wrote it was killed, the disk was full, or the recording was as large as it may be; what is there can be replayed as a part",
                file.display()
            ),
            RecordingError::Diverged(difference) => {
                write!(
                    f,
                    "the replay differs at {difference}; replay the same code with the same inputs"
                )
            }
            RecordingError::Stopped { line } => {
                write!(
                    f,
                    "the replay was stopped before line {line}: its VM has ended"
                )
            }
            RecordingError::Unwritable { origin, problem } => {
                write!(f, "{origin} cannot be recorded: {problem}")
            }
        }
    }
}

impl Error for RecordingError {}

//! What can go wrong with a VM and with starting guests.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use windlass_process::NoHost;
use windlass_runtime::dispatch::DispatcherError;

/// Why a guest was not started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SpawnError {
    /// Its process was not made.
    Process(windlass_process::SpawnError),
    /// The guest that starts it has as many tasks as it may have.
    TooManyTasks {
        /// How many those are.
        most: usize,
    },
    /// As many guests as may be are stuck in functions of the host.
    TooManyStuck {
        /// Which, by name.
        stuck: Vec<String>,
    },
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::Process(error) => fmt::Display::fmt(error, f),
            SpawnError::TooManyTasks { most } => write!(
                f,
                "the guest has {most} tasks already, which is its limit: await some, or raise Limits::tasks"
            ),
            SpawnError::TooManyStuck { stuck } => write!(
                f,
                "no guest is started while {} do not come back from functions of the host ({}): mend those functions, or raise Builder::max_stuck",
                stuck.len(),
                stuck.join(", ")
            ),
        }
    }
}

impl Error for SpawnError {}

impl From<windlass_process::SpawnError> for SpawnError {
    fn from(error: windlass_process::SpawnError) -> SpawnError {
        SpawnError::Process(error)
    }
}

/// Why a VM could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// No workers.
    NoWorkers,
    /// A slice of no time, or of no instructions.
    NoSlice,
    /// Recording and replaying need [`Placement::Reactor`](crate::Placement::Reactor): elsewhere decisions are not made in one place.
    NotOnThePool,
    /// There is no place for processes.
    Host(NoHost),
    /// The threads could not be made.
    Workers(DispatcherError),
    /// The recording could not be read, or written.
    Recording(RecordingError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NoWorkers => f.write_str("a VM needs at least one worker"),
            BuildError::NoSlice => f.write_str("a slice must be longer than nothing"),
            BuildError::NotOnThePool => f.write_str(
                "recording and replaying need Placement::Reactor: on the pool decisions are not made in one place",
            ),
            BuildError::Host(error) => fmt::Display::fmt(error, f),
            BuildError::Workers(error) => fmt::Display::fmt(error, f),
            BuildError::Recording(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl Error for BuildError {}

impl From<RecordingError> for BuildError {
    fn from(error: RecordingError) -> BuildError {
        BuildError::Recording(error)
    }
}

/// What is wrong with a recording, or with replaying it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file could not be read or written.
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        kind: io::ErrorKind,
        /// In the system's words.
        message: String,
    },
    /// It is no recording of this program, or of another version.
    Foreign {
        /// What was found.
        found: String,
    },
    /// A line makes no sense.
    BadLine {
        /// From 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// The recording ends within what it describes: the program that wrote it was ended.
    Truncated {
        /// How many lines there are.
        line: usize,
    },
    /// The guests do something else than they did then.
    Diverged {
        /// Where, from 1.
        line: usize,
        /// What the recording says.
        recorded: String,
        /// What happened.
        happened: String,
    },
    /// A value cannot be written down: a Rust value that only this program knows.
    Opaque {
        /// Where it came from.
        place: &'static str,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::File { path, message, .. } => {
                write!(f, "{}: {message}", path.display())
            }
            RecordingError::Foreign { found } => write!(
                f,
                "this is no recording of a VM that can be replayed here: it begins with {found}"
            ),
            RecordingError::BadLine { line, problem } => {
                write!(f, "line {line} of the recording: {problem}")
            }
            RecordingError::Truncated { line } => write!(
                f,
                "the recording breaks off after line {line}: the program that wrote it was ended before it was done"
            ),
            RecordingError::Diverged {
                line,
                recorded,
                happened,
            } => write!(
                f,
                "the replay differs at line {line}: the recording says {recorded}, and now it is {happened}; replay the same code with the same inputs"
            ),
            RecordingError::Opaque { place } => write!(
                f,
                "{place} cannot be written down: it is a Rust value that only this program knows, has more than a million values, or has lists and maps more than 50 levels deep; send what any process understands, and less of it, while recording"
            ),
        }
    }
}

impl Error for RecordingError {}

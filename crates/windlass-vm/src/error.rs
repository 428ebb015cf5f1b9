//! What can go wrong with a VM and with starting guests.

use std::error::Error;
use std::fmt;

use windlass_actor::NoHost;
use windlass_record::RecordingError;
use windlass_runtime::dispatch::DispatcherError;

/// Why a guest was not started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SpawnError {
    /// Its process was not made.
    Process(windlass_actor::SpawnError),
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

impl From<windlass_actor::SpawnError> for SpawnError {
    fn from(error: windlass_actor::SpawnError) -> SpawnError {
        SpawnError::Process(error)
    }
}

/// Why a VM could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The number of workers is 0.
    NoWorkers,
    /// A slice of no time, or of no instructions.
    NoSlice,
    /// Recording and replaying need [`Placement::Reactor`](crate::Placement::Reactor): elsewhere
    /// decisions are not made in one place.
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

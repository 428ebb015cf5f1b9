//! What can go wrong before a script runs.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use crate::preempt::SignalError;

/// Why an interpreter could not be made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// The signal for preemption cannot be used.
    Signal(SignalError),
    /// A directory that scripts may use is not there.
    Directory {
        /// The path of the file.
        path: PathBuf,
        /// The reason of the failure.
        message: String,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Signal(error) => fmt::Display::fmt(error, f),
            BuildError::Directory { path, message } => {
                write!(f, "scripts cannot be given {}: {message}", path.display())
            }
        }
    }
}

impl Error for BuildError {}

/// Why a script was not started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ScriptError {
    /// Its file could not be read.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The reason of the failure.
        message: String,
    },
    /// It is no text.
    NotText {
        /// The path of the file.
        path: PathBuf,
    },
    /// It is outside of the folder that scripts come from.
    Outside {
        /// What was asked for.
        path: PathBuf,
        /// Where scripts come from.
        root: PathBuf,
    },
    /// Its process was not started.
    Spawn(windlass_vm::SpawnError),
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptError::File { path, message } => write!(f, "{}: {message}", path.display()),
            ScriptError::NotText { path } => write!(
                f,
                "{} is no text: Lua scripts are UTF-8, and bytecode is not loaded",
                path.display()
            ),
            ScriptError::Outside { path, root } => write!(
                f,
                "{} is outside of {}: scripts and modules come from there only",
                path.display(),
                root.display()
            ),
            ScriptError::Spawn(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl Error for ScriptError {}

impl From<windlass_vm::SpawnError> for ScriptError {
    fn from(error: windlass_vm::SpawnError) -> ScriptError {
        ScriptError::Spawn(error)
    }
}

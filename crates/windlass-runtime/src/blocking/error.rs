//! Why a closure was not taken.

use std::fmt;
use std::io;

/// A closure could not be handed to a blocking thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnBlockingError {
    /// There is no blocking thread, and the operating system refused to start one.
    NoThread(io::Error),
}

impl fmt::Display for SpawnBlockingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpawnBlockingError::NoThread(error) = self;
        write!(
            f,
            "no blocking thread could be started ({error}); lower max_blocking_threads or the \
             stack size, or raise the process's limits"
        )
    }
}

impl std::error::Error for SpawnBlockingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let SpawnBlockingError::NoThread(error) = self;
        Some(error)
    }
}

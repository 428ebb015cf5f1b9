//! Jobs that are named because they did not end in time.

use std::fmt;
use std::panic::Location;

use windlass_core::task::TaskRef;

/// A blocking closure that did not end in time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StuckJob {
    /// The name of the job, if it has one.
    pub name: Option<String>,
    /// Where it was spawned.
    pub location: &'static Location<'static>,
}

impl StuckJob {
    pub(crate) fn of(task: &TaskRef) -> StuckJob {
        let meta = task.header().meta();
        StuckJob {
            name: meta.name().map(|name| name.to_string()),
            location: meta.location(),
        }
    }
}

impl fmt::Display for StuckJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("(unnamed)");
        write!(
            f,
            "blocking job {name}, spawned at {}, did not return",
            self.location
        )
    }
}

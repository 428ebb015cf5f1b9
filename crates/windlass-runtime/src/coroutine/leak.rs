//! Coroutines that could not end.

use std::fmt;
use std::panic::Location;

use super::frame::Frame;
use crate::handle::Handle;

/// A coroutine that was still inside a shielded section, or swallowed its cancellation, when its
/// runtime's time to shut down was over. Its stack stays as it is, for ever.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeakedCoroutine {
    /// The name of the coroutine, if it has one.
    pub name: Option<String>,
    /// Where it was spawned; none for one that is driven by hand.
    pub location: Option<&'static Location<'static>>,
}

impl fmt::Display for LeakedCoroutine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("(unnamed)");
        write!(f, "coroutine {name}")?;
        if let Some(location) = self.location {
            write!(f, ", spawned at {location},")?;
        }
        write!(f, " did not unwind; it is leaked with its stack")
    }
}

/// Tells the runtime that a coroutine is leaked.
#[cold]
pub(super) fn report(frame: &Frame) {
    let meta = frame.header().map(|header| header.meta());
    let leaked = LeakedCoroutine {
        name: meta.and_then(|meta| meta.name().map(|name| name.to_string())),
        location: meta.map(|meta| meta.location()),
    };
    tracing::warn!(target: "windlass::coroutine", "{leaked}");
    if let Ok(runtime) = Handle::try_current() {
        runtime.shared().leaked.lock().push(leaked);
    }
}

//! The kind, the name and the number of a runtime, kept with it so that every handle finds them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_runtime::Handle;
use windlass_runtime::frontend::{FrontEnd, Stopping};
use windlass_runtime::observe::{Cursor, Observe, Page, Sample};

/// The kind of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// One thread runs all tasks.
    CurrentThread,
    /// Several workers run tasks.
    MultiThread,
}

/// Tells a runtime from others of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What tokio knows about a runtime and Windlass does not. Attached to the runtime; it never stops
/// anything.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) flavor: RuntimeFlavor,
    pub(super) name: Option<String>,
    pub(super) id: Id,
}

impl Identity {
    pub(super) fn new(flavor: RuntimeFlavor, name: Option<String>) -> Arc<Identity> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: the numbers only have to differ.
        let id = Id(NEXT.fetch_add(1, Ordering::Relaxed));
        Arc::new(Identity { flavor, name, id })
    }

    /// Returns the identity of a runtime; one that was not made here has several workers.
    pub(super) fn of(handle: &Handle) -> Arc<Identity> {
        let unknown = || Identity::new(RuntimeFlavor::MultiThread, None);
        let found = handle.attached::<Identity>(|_| true);
        found.unwrap_or_else(unknown)
    }
}

impl Observe for Identity {
    fn source(&self) -> &'static str {
        "tokio"
    }

    fn samples(&self, _take: &mut dyn FnMut(Sample)) {}

    fn entities(&self, _page: &mut Page<'_>) -> Option<Cursor> {
        None
    }
}

impl FrontEnd for Identity {
    fn stop(self: Arc<Self>, _timeout: Duration) -> Stopping {
        Box::pin(async { Vec::new() })
    }

    fn closes_last(&self) -> bool {
        true
    }
}

//! The kind of a runtime, kept with the runtime so that every handle finds it.

use std::sync::Arc;
use std::time::Duration;

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

/// Attached to a runtime; it never stops anything.
struct Flavor(RuntimeFlavor);

/// Remembers the kind of a runtime.
pub(super) fn set(handle: &Handle, flavor: RuntimeFlavor) {
    // A runtime that is new does not stop.
    let _ = handle.attach(Arc::new(Flavor(flavor)));
}

/// Returns the kind of a runtime; one that was not made here has several workers.
pub(super) fn get(handle: &Handle) -> RuntimeFlavor {
    let found = handle.attached::<Flavor>(|_| true);
    found.map_or(RuntimeFlavor::MultiThread, |flavor| flavor.0)
}

impl Observe for Flavor {
    fn source(&self) -> &'static str {
        "tokio"
    }

    fn samples(&self, _take: &mut dyn FnMut(Sample)) {}

    fn entities(&self, _page: &mut Page<'_>) -> Option<Cursor> {
        None
    }
}

impl FrontEnd for Flavor {
    fn stop(self: Arc<Self>, _timeout: Duration) -> Stopping {
        Box::pin(async { Vec::new() })
    }

    fn closes_last(&self) -> bool {
        true
    }
}

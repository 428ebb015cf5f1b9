//! The kind, the name and the number of a runtime.

use std::fmt;

use windlass_core::sync::atomic::{AtomicU64, Ordering};

/// The kind of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// The thread in `block_on` runs all tasks; also that of a simulation.
    CurrentThread,
    /// Workers run tasks.
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

#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) flavor: RuntimeFlavor,
    pub(crate) name: Option<String>,
    pub(crate) id: Id,
}

impl Identity {
    pub(crate) fn new(flavor: RuntimeFlavor, name: Option<String>) -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: the numbers only have to differ.
        let id = Id(NEXT.fetch_add(1, Ordering::Relaxed));
        Identity { flavor, name, id }
    }
}

//! What a guest may use.

use std::time::Duration;

/// What a guest may use; nothing is limited unless it says so.
///
/// The runtime counts time and tasks. Memory and stack only the VM can count: it finds the limits
/// in its budget, and ends the guest with an error of its own when they are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Limits {
    /// Time on a processor, waits excluded. When it is over, the guest ends with an error.
    pub cpu: Option<Duration>,
    /// Bytes of memory.
    pub memory: Option<usize>,
    /// How deep calls may go, in whatever the VM counts.
    pub stack: Option<usize>,
    /// Tasks that it has started and that have not ended.
    pub tasks: Option<usize>,
}

impl Limits {
    /// No limit at all.
    pub const NONE: Limits = Limits {
        cpu: None,
        memory: None,
        stack: None,
        tasks: None,
    };

    /// Time on a processor.
    pub fn cpu(mut self, most: Duration) -> Limits {
        self.cpu = Some(most);
        self
    }

    /// Bytes of memory.
    pub fn memory(mut self, most: usize) -> Limits {
        self.memory = Some(most);
        self
    }

    /// How deep calls may go.
    pub fn stack(mut self, most: usize) -> Limits {
        self.stack = Some(most);
        self
    }

    /// Tasks that it has started and that have not ended.
    pub fn tasks(mut self, most: usize) -> Limits {
        self.tasks = Some(most);
        self
    }
}

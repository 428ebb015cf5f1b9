//! The blocking pool as plain data.

/// The blocking pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BlockingSnapshot {
    /// Threads that the pool has.
    pub threads: usize,
    /// Threads without a job.
    pub idle: usize,
    /// Jobs that wait for a thread.
    pub queued: usize,
    /// Jobs ever submitted.
    pub submitted: u64,
    /// Jobs and tasks that were not run because they waited past their deadline.
    pub expired: u64,
    /// Tasks of the io dispatcher that have not ended.
    pub io_tasks: usize,
    /// Turns that tasks of the io dispatcher have had.
    pub io_turns: u64,
}

//! Processes as plain data.

use std::sync::Arc;

use windlass_value::Pid;

use crate::shell::Resident;

/// A process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The PID of the process.
    pub pid: Pid,
    /// The names that are registered for it.
    pub names: Vec<Arc<str>>,
    /// What it is doing.
    pub state: ProcessState,
    /// Messages that it has not read; none: its mailbox does not count them.
    pub unread: Option<usize>,
    /// Messages that its mailbox has dropped.
    pub dropped: u64,
    /// Where it was spawned.
    pub spawned_at: Option<String>,
}

/// What a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// It waits for a worker.
    Ready,
    /// It is inside a step.
    Running,
    /// It waits for the completion of a yield, or for what else an async process awaits.
    Blocked,
    /// It waits for messages.
    Idle,
    /// It has ended.
    Complete,
}

pub(super) fn info(process: &dyn Resident) -> ProcessInfo {
    let shell = process.shell();
    let header = shell.task().map(|task| task.header());
    let is_queued = header.is_some_and(|header| !header.state().is_idle());
    let state = match () {
        () if shell.is_complete() => ProcessState::Complete,
        () if shell.is_running() => ProcessState::Running,
        () if is_queued || header.is_none() => ProcessState::Ready,
        () if shell.is_blocked() => ProcessState::Blocked,
        () => ProcessState::Idle,
    };
    ProcessInfo {
        pid: shell.pid,
        names: shell.names(),
        state,
        unread: process.unread(),
        dropped: process.dropped(),
        spawned_at: header.map(|header| header.meta().location().to_string()),
    }
}

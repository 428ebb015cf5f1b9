//! A guest that was started, and the handle to wait for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_actor::{Exit, Host, Pid};
use windlass_core::sync::atomic::Ordering;

use crate::guest_shared::GuestShared;
use crate::reason::ReasonKind;

/// A guest that was started, and the way to wait for it, for guests
/// ([`Reason::AwaitTask`](crate::Reason)) and for Rust code ([`join`](Task::join)).
///
/// Dropping it changes nothing about the guest. If the guest fails, and the last handle is dropped
/// and the guest was never awaited, the failure is reported
/// ([`Builder::on_uncaught`](crate::Builder::on_uncaught)).
pub struct Task {
    pub(crate) guest: Arc<GuestShared>,
}

impl Task {
    pub(crate) fn new(guest: Arc<GuestShared>) -> Task {
        guest.add_handle();
        Task { guest }
    }

    /// Returns the PID of its process.
    pub fn pid(&self) -> Pid {
        self.guest.pid()
    }

    fn host(&self) -> Option<(Host, Pid)> {
        let context = self.guest.context()?;
        Some((context.host(), context.pid()))
    }

    /// Waits for its end.
    pub async fn join(&self) -> Exit {
        self.guest.note_awaited();
        let context = self.guest.context().expect("a task has a process");
        context.address().ended().await
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.guest.is_over()
    }

    /// Cancels it: all its waits end with [`Exception::Cancelled`](crate::Exception::Cancelled).
    pub fn cancel(&self, reason: impl Into<Arc<str>>) {
        if let Some((host, pid)) = self.host() {
            host.cancel(pid, reason);
        }
    }

    /// Ends it at the end of its step.
    pub fn kill(&self) {
        if let Some((host, pid)) = self.host() {
            host.kill(pid);
        }
    }

    /// How long it has run on a processor, waits excluded.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.guest.cpu.load(Ordering::Relaxed))
    }

    /// What it waits for now; nothing if it runs, is ready, or has ended.
    pub fn waits_for(&self) -> Vec<ReasonKind> {
        self.guest.waits_for()
    }
}

impl Clone for Task {
    fn clone(&self) -> Task {
        Task::new(self.guest.clone())
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.guest.remove_handle();
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task")
            .field("pid", &self.pid())
            .field("over", &self.is_finished())
            .finish_non_exhaustive()
    }
}

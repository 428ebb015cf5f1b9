//! The end of a host.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_runtime::frontend::{FrontEnd, Stopping};
use windlass_runtime::time::{Instant, timeout_at};
use windlass_value::{Payload, Pid};

use super::HostShared;
use crate::bonds::announce;
use crate::exit::ExitReason;
use crate::shell::{Resident, SHUTDOWN, Shell, Signal};

/// The state of the shutdown.
#[derive(Default)]
pub(super) enum Shutdown {
    #[default]
    NotYet,
    Running,
    Over(StopReport),
}

/// How long a killed process may take to be gone, before it is named.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// A process that did not stop in time. Its step is still running, or no worker was left to end it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The process that did not stop.
    pub pid: Pid,
    /// Its name as a task.
    pub name: Option<String>,
    /// Where it was spawned.
    pub spawned_at: Option<String>,
    /// Whether it is inside a step that does not return.
    pub in_step: bool,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.pid, &self.name, &self.spawned_at)?;
        f.write_str(match self.in_step {
            true => " is inside a step that does not return",
            false => " could not be ended: no worker was left",
        })
    }
}

/// A process that was cancelled, did not end in time, and was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Killed {
    /// The process that was killed.
    pub pid: Pid,
    /// Its name as a task.
    pub name: Option<String>,
    /// Where it was spawned.
    pub spawned_at: Option<String>,
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.pid, &self.name, &self.spawned_at)?;
        f.write_str(" did not stop when it was told to, and was killed")
    }
}

/// Writes who a process is.
fn show(
    f: &mut fmt::Formatter<'_>,
    pid: Pid,
    name: &Option<String>,
    spawned_at: &Option<String>,
) -> fmt::Result {
    write!(f, "process {pid}")?;
    if let Some(name) = name {
        write!(f, " ({name})")?;
    }
    match spawned_at {
        Some(place) => write!(f, ", spawned at {place},"),
        None => Ok(()),
    }
}

/// How a shutdown went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StopReport {
    /// What did not stop.
    pub stuck: Vec<Stuck>,
    /// What was killed after the time to stop was over, and is gone.
    pub killed: Vec<Killed>,
}

impl HostShared {
    pub(super) async fn stop_all(&self, timeout: Duration) -> StopReport {
        loop {
            let over = self.emptied.notified();
            {
                let mut shutdown = self.shutdown.lock();
                match &*shutdown {
                    Shutdown::NotYet => {
                        *shutdown = Shutdown::Running;
                        break;
                    }
                    Shutdown::Running => {}
                    Shutdown::Over(report) => return report.clone(),
                }
            }
            over.await;
        }
        let report = self.stop_first(timeout).await;
        *self.shutdown.lock() = Shutdown::Over(report.clone());
        self.emptied.notify_waiters();
        report
    }

    async fn stop_first(&self, timeout: Duration) -> StopReport {
        let deadline = Instant::now() + timeout;
        self.population.close();
        let reason: Arc<str> = SHUTDOWN.into();
        for process in self.residents.all() {
            // The others are stopped by their supervisors, each in its turn.
            if !process.shell().is_supervised() {
                process.shell().signal(Signal::Cancel(reason.clone()));
            }
        }
        if timeout_at(deadline, self.empty()).await.is_ok() {
            return StopReport::default();
        }
        let mut killed = Vec::new();
        for process in self.residents.all() {
            let shell = process.shell();
            let (name, spawned_at) = described(shell);
            killed.push(Killed {
                pid: shell.pid,
                name,
                spawned_at,
            });
            shell.kill();
        }
        if timeout_at(Instant::now() + LAST_MOMENT, self.empty())
            .await
            .is_ok()
        {
            let stuck = Vec::new();
            return StopReport { stuck, killed };
        }
        let left = self.residents.all();
        let name = |process: &Arc<dyn Resident>| {
            let shell = process.shell();
            let in_step = shell.kill();
            // Its names and groups are free, and tasks that wait for its end are notified.
            let (names, groups) = shell.names_and_groups();
            self.names.release(shell.pid, &names);
            self.leave_groups(shell.pid, &groups);
            announce(shell, ExitReason::Killed, Payload::Nil);
            let (name, spawned_at) = described(shell);
            Stuck {
                pid: shell.pid,
                name,
                spawned_at,
                in_step,
            }
        };
        let stuck: Vec<Stuck> = left.iter().map(name).collect();
        killed.retain(|killed| stuck.iter().all(|stuck| stuck.pid != killed.pid));
        StopReport { stuck, killed }
    }

    /// Resolves when the closed host has no process left.
    async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.population.live() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

/// The name of a process as a task, and where it was spawned.
fn described(shell: &Shell) -> (Option<String>, Option<String>) {
    let meta = shell.task().map(|task| task.header().meta());
    (
        meta.and_then(|meta| meta.name().map(|name| name.to_string())),
        meta.map(|meta| meta.location().to_string()),
    )
}

impl FrontEnd for HostShared {
    fn stop(self: Arc<Self>, timeout: Duration) -> Stopping {
        Box::pin(async move {
            let report = self.stop_all(timeout).await;
            report.stuck.iter().map(Stuck::to_string).collect()
        })
    }
}

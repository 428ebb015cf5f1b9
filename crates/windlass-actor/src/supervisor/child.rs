//! What a supervisor knows about starting and stopping one child.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_value::Pid;

use super::Supervisor;
use super::child_address::{ChildAddress, Publish, Publisher};
use crate::error::SpawnError;
use crate::exit::ExitReason;
use crate::spawn::{ProcessHandle, Spawn};

/// When a child is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Restarted after every end.
    Permanent,
    /// When it did not end normally and was not cancelled.
    Transient,
    /// Never; it is forgotten when it ends.
    Temporary,
}

impl Restart {
    pub(super) fn applies_to(self, reason: &ExitReason) -> bool {
        match self {
            Restart::Permanent => true,
            Restart::Transient => !matches!(reason, ExitReason::Normal | ExitReason::Cancelled(_)),
            Restart::Temporary => false,
        }
    }
}

type Start = dyn Fn(Spawn) -> Result<Pid, SpawnError> + Send + Sync;

/// How one child is started and stopped.
///
/// ```
/// use windlass_actor::Context;
/// use windlass_actor::supervisor::ChildSpec;
///
/// let child = ChildSpec::new("clock", |spawn| {
///     let clock = spawn.spawn(|mut ctx: Context<()>| async move { while ctx.recv().await.is_some() {} })?;
///     Ok(clock.pid())
/// });
/// # let _ = child.transient();
/// ```
#[derive(Clone)]
pub struct ChildSpec {
    pub(super) id: Arc<str>,
    pub(super) start: Arc<Start>,
    pub(super) restart: Restart,
    pub(super) stop_within: Duration,
    /// Where it is said what process the child is; none if there is no address that asks.
    publisher: Option<Arc<dyn Publish>>,
}

/// The right of a supervisor to say what process a child is. Dropped with the child.
pub(super) struct Claim {
    publisher: Arc<dyn Publish>,
    owner: Pid,
}

impl Claim {
    /// The child is started again.
    pub(super) fn wait(&self) {
        self.publisher.wait(self.owner);
    }

    /// The process of the child has ended, or is being stopped.
    pub(super) fn pause(&self) {
        self.publisher.pause(self.owner);
    }

    /// The child is not started again.
    pub(super) fn end(&self) {
        self.publisher.end(self.owner);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.end();
    }
}

impl ChildSpec {
    /// A permanent child. `start` starts it with the [`Spawn`] it is given, which ties it to the
    /// supervisor, and gives its PID.
    pub fn new<F>(id: impl Into<Arc<str>>, start: F) -> ChildSpec
    where
        F: Fn(Spawn) -> Result<Pid, SpawnError> + Send + Sync + 'static,
    {
        ChildSpec {
            id: id.into(),
            start: Arc::new(start),
            restart: Restart::Permanent,
            stop_within: Duration::from_secs(5),
            publisher: None,
        }
    }

    /// A permanent child with an address that survives its restarts. `start` starts it as in
    /// [`new`](ChildSpec::new), and returns the process. The address is of use as long as one
    /// supervisor has the child: give clones of it to whoever speaks to the child, and the spec to
    /// one supervisor.
    pub fn addressed<M, F>(id: impl Into<Arc<str>>, start: F) -> (ChildSpec, ChildAddress<M>)
    where
        M: Send + 'static,
        F: Fn(Spawn) -> Result<ProcessHandle<M>, SpawnError> + Send + Sync + 'static,
    {
        let (publisher, address) = Publisher::new();
        let publisher = Arc::new(publisher);
        let runs = publisher.clone();
        let mut child = ChildSpec::new(id, move |spawn| {
            let process = start(spawn)?;
            runs.run(process.address());
            Ok(process.pid())
        });
        child.publisher = Some(publisher);
        (child, address)
    }

    /// Takes over for a supervisor: addresses wait for what it starts.
    pub(super) fn claim(&self, owner: Pid) -> Option<Claim> {
        let publisher = self.publisher.clone()?;
        let claim = Claim { publisher, owner };
        claim.wait();
        Some(claim)
    }

    /// A supervisor as a child. It has a minute to stop its own.
    pub fn supervisor(id: impl Into<Arc<str>>, supervisor: Supervisor) -> ChildSpec {
        let start = move |spawn: Spawn| Ok(supervisor.clone().start_with(spawn)?.pid());
        ChildSpec::new(id, start).stop_within(Duration::from_secs(60))
    }

    /// When it is started again.
    pub fn restart(mut self, restart: Restart) -> ChildSpec {
        self.restart = restart;
        self
    }

    /// Started again when it did not end normally and was not cancelled.
    pub fn transient(self) -> ChildSpec {
        self.restart(Restart::Transient)
    }

    /// Never started again.
    pub fn temporary(self) -> ChildSpec {
        self.restart(Restart::Temporary)
    }

    /// How long it may take to stop before it is killed; 5 s otherwise.
    pub fn stop_within(mut self, time: Duration) -> ChildSpec {
        self.stop_within = time;
        self
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("id", &self.id)
            .field("restart", &self.restart)
            .field("stop_within", &self.stop_within)
            .finish_non_exhaustive()
    }
}

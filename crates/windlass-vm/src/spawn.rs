//! Starting guests.

use std::fmt;
use std::sync::Arc;

use windlass_actor::{ExitReason, MailboxPolicy, Spawn};
use windlass_core::sync::atomic::Ordering;
use windlass_value::Payloads;

use crate::error::SpawnError;
use crate::guest::Guest;
use crate::guest_process::GuestProcess;
use crate::guest_shared::GuestShared;
use crate::limits::Limits;
use crate::task::Task;
use crate::vm::{GuestScheduler, Vm, VmShared};

/// How a guest is started, apart from the usual.
#[derive(Default)]
pub struct SpawnOptions {
    pub(crate) limits: Option<Limits>,
    name: Option<Arc<str>>,
    mailbox: Option<MailboxPolicy>,
    linked: bool,
    monitored: bool,
}

impl SpawnOptions {
    /// Options with their defaults.
    pub fn new() -> SpawnOptions {
        SpawnOptions::default()
    }

    /// With these limits, instead of those of the VM.
    pub fn limits(mut self, limits: Limits) -> SpawnOptions {
        self.limits = Some(limits);
        self
    }

    /// With a name.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> SpawnOptions {
        self.name = Some(name.into());
        self
    }

    /// With a mailbox of this kind.
    pub fn mailbox(mut self, policy: MailboxPolicy) -> SpawnOptions {
        self.mailbox = Some(policy);
        self
    }

    /// Linked to the guest that starts it; of no meaning if that is none.
    pub fn linked(mut self) -> SpawnOptions {
        self.linked = true;
        self
    }

    /// Lets the guest that starts it monitor it. No effect if no guest starts it.
    pub fn monitored(mut self) -> SpawnOptions {
        self.monitored = true;
        self
    }
}

impl fmt::Debug for SpawnOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnOptions")
            .field("limits", &self.limits)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Vm {
    /// Starts a guest.
    pub fn spawn(&self, guest: impl Guest) -> Result<Task, SpawnError> {
        self.spawn_with(guest, SpawnOptions::default())
    }

    /// Starts a guest, with what else there is to say.
    pub fn spawn_with(&self, guest: impl Guest, options: SpawnOptions) -> Result<Task, SpawnError> {
        self.shared().spawn_from(None, Box::new(guest), options)
    }

    /// Starts a guest in a process with these options: for a supervisor that starts its children,
    /// say.
    ///
    /// ```
    /// use windlass_actor::supervisor::{ChildSpec, Strategy, Supervisor};
    /// use windlass_vm::{Budget, Guest, Reason, Resume, Step, Vm};
    ///
    /// struct Waits;
    ///
    /// impl Guest for Waits {
    ///     fn step(&mut self, _: &Budget<'_>, resume: Resume) -> Step {
    ///         match resume {
    ///             Resume::Ended(Err(why)) => Step::Failed(why.into_actor_error()),
    ///             _ => Step::Suspend(Reason::Exit),
    ///         }
    ///     }
    /// }
    ///
    /// # let runtime = windlass_runtime::Runtime::new()?;
    /// # runtime.block_on(async {
    /// let vm = Vm::builder().build()?;
    /// let host = vm.host().clone();
    /// let child = ChildSpec::new("waits", move |spawn| Ok(vm.spawn_in(spawn, Waits)?.pid()));
    /// let supervisor = Supervisor::new(Strategy::OneForOne).child(child).start(&host)?;
    /// supervisor.cancel("the example is over");
    /// supervisor.join().await;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spawn_in(
        &self,
        spawn: Spawn,
        guest: impl Guest,
    ) -> Result<Task, windlass_actor::SpawnError> {
        self.spawn_in_with(spawn, guest, self.shared().limits)
    }

    /// The same, with limits of its own.
    pub fn spawn_in_with(
        &self,
        spawn: Spawn,
        guest: impl Guest,
        limits: Limits,
    ) -> Result<Task, windlass_actor::SpawnError> {
        if let Err(refused) = self.shared().stuck.check() {
            let reason = ExitReason::Error(refused.to_string().into());
            return Err(windlass_actor::SpawnError::Init(reason));
        }
        self.shared().start(spawn, None, Box::new(guest), limits)
    }

    /// What each guest may use, unless its own limits say otherwise.
    pub fn limits(&self) -> Limits {
        self.shared().limits
    }
}

impl VmShared {
    /// Starts a guest for another one, or for Rust code.
    pub(crate) fn spawn_from(
        self: &Arc<VmShared>,
        parent: Option<&Arc<GuestShared>>,
        guest: Box<dyn Guest>,
        options: SpawnOptions,
    ) -> Result<Task, SpawnError> {
        self.stuck.check()?;
        if let Some(parent) = parent {
            // Relaxed: a count. Only the parent adds to it.
            let tasks = parent.tasks.load(Ordering::Relaxed);
            if let Some(most) = parent.limits.tasks.filter(|most| tasks >= *most) {
                return Err(SpawnError::TooManyTasks { most });
            }
        }
        let mut spawn = self.host.process();
        if let Some(name) = options.name {
            spawn = spawn.name(name);
        }
        if let Some(policy) = options.mailbox {
            spawn = spawn.mailbox(policy);
        }
        let context = parent.and_then(|parent| parent.context());
        if let Some(parent) = context.filter(|_| options.linked) {
            spawn = spawn.linked_to(parent.pid());
        }
        if let Some(parent) = context.filter(|_| options.monitored) {
            spawn = spawn.monitored_by(parent.pid());
        }
        let limits = options.limits.unwrap_or(self.limits);
        Ok(self.start(spawn, parent, guest, limits)?)
    }

    fn start(
        self: &Arc<VmShared>,
        spawn: Spawn,
        parent: Option<&Arc<GuestShared>>,
        guest: Box<dyn Guest>,
        limits: Limits,
    ) -> Result<Task, windlass_actor::SpawnError> {
        let name = guest.name();
        let spawn = match &name {
            Some(name) => spawn.label(name),
            None => spawn,
        };
        let (spawn, stored, in_shell) = match &self.scheduler {
            GuestScheduler::Pool(_) => (spawn, None, Some(guest)),
            GuestScheduler::Reactor(reactor) => (spawn.on(reactor.pool()), Some(guest), None),
        };
        let shared = GuestShared::new(self, stored, name, limits, parent);
        // Before the process can end.
        let task = Task::new(shared.clone());
        if let Some(parent) = parent {
            parent.tasks.fetch_add(1, Ordering::Relaxed);
        }
        self.woke_up();
        let shell = GuestProcess::new(shared, in_shell, parent.is_none());
        // If it is not started, the shell is closed, and finishes the guest.
        spawn.step_at(Box::new(shell), "main", Payloads::new())?;
        Ok(task)
    }
}

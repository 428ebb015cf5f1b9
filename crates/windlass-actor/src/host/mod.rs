//! The host: where processes live, and how they are found.

mod builder;
mod info;
mod links;
mod names;
mod observe;
mod population;
mod residents;
mod routing;
mod shared;
mod stop;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::sync::atomic::Ordering;
use windlass_runtime::Handle;
use windlass_runtime::frontend::RuntimeStopping;
use windlass_runtime::time::{Instant, timeout_at};
use windlass_value::Pid;

pub use self::builder::HostBuilder;
use self::info::info;
pub use self::info::{ProcessInfo, ProcessState};
pub(crate) use self::shared::HostShared;
pub use self::stop::{Killed, StopReport, Stuck};
use crate::address::{Address, Ended};
use crate::error::{BuildError, NoHost, RegisterError, SendError, SendErrorKind};
use crate::message::Message;
use crate::relay::RemoteSignal;
use crate::shell::Core;
use crate::spawn::Spawn;

/// A place for processes on a runtime. Cheap to clone.
///
/// Most programs never make one: [`spawn`](crate::spawn) uses the runtime's own, which is there
/// from its first use.
///
/// ```
/// use windlass_actor::Host;
/// use windlass_runtime::Runtime;
///
/// let runtime = Runtime::new()?;
/// let host = Host::builder().name("orders").max_processes(1000).build(runtime.handle())?;
/// let process = host.spawn(|mut ctx: windlass_actor::Context<u32>| async move {
///     while let Some(number) = ctx.recv().await {
///         println!("{number}");
///     }
/// })?;
/// process.tell(7)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Host(pub(crate) Arc<HostShared>);

impl Host {
    /// The host that a runtime has by itself, from its first use.
    pub fn of(runtime: &Handle) -> Result<Host, BuildError> {
        let own = |host: &HostShared| host.is_default;
        if let Some(host) = runtime.attached(own) {
            return Ok(Host(host));
        }
        let mut builder = Host::builder();
        builder.is_default = true;
        let made = builder.make(runtime)?;
        runtime
            .attached_or(own, made)
            .map(Host)
            .map_err(|RuntimeStopping| BuildError::Stopping)
    }

    /// The host of the runtime that this thread is in.
    pub fn current() -> Result<Host, NoHost> {
        let runtime = Handle::try_current().map_err(NoHost::NoRuntime)?;
        Host::of(&runtime).map_err(|_| NoHost::Stopping)
    }

    /// How a process is to be started.
    #[track_caller]
    pub fn process(&self) -> Spawn {
        Spawn::new(self.clone())
    }

    /// Returns the runtime that runs the processes.
    pub fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    // ---- messages ----

    /// Sends a message to any process, here or on another node. Does not wait.
    pub fn send(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        self.0.route(to, message)
    }

    /// Sends a message to the process with this name.
    pub fn send_to_name(&self, name: &str, message: Message) -> Result<(), SendError<Message>> {
        match self.0.names.get(name) {
            Some(process) => process.deliver(message),
            None => Err(SendError {
                message,
                kind: SendErrorKind::NoProcess,
            }),
        }
    }

    /// Takes a message that came from another node.
    pub fn receive(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        match self.0.find(to) {
            Some(process) => process.deliver(message),
            None => Err(SendError {
                message,
                kind: SendErrorKind::NoProcess,
            }),
        }
    }

    /// Takes a signal that came from another node.
    pub fn receive_signal(&self, to: Pid, signal: RemoteSignal) {
        self.0.receive_signal(to, signal);
    }

    /// A node cannot be reached any more: links and monitors that lead there end with
    /// `NoConnection`.
    pub fn lose_node(&self, node: &str) {
        let lost =
            |pid: Pid| pid.node_id() != self.0.node_id && pid.node().as_deref() == Some(node);
        for process in self.0.residents.all() {
            for exited in process.shell().bonds_to(&lost) {
                process.shell().notify_exit(exited);
            }
        }
    }

    /// The typed address of a process here, if it takes messages of this type.
    pub fn address<M: Send + 'static>(&self, pid: Pid) -> Option<Address<M>> {
        let core = self.0.find(pid)?.into_any().downcast::<Core<M>>().ok()?;
        Some(Address::new(core))
    }

    /// Waits for the end of a process here; one that is not there has ended with `NoProcess`.
    pub fn ended(&self, pid: Pid) -> Ended {
        Ended::new(pid, self.0.find(pid))
    }

    /// Whether there is such a process on this host.
    pub fn is_alive(&self, pid: Pid) -> bool {
        self.0.find(pid).is_some()
    }

    /// Cancels a process. That is an event: the process decides when it ends.
    pub fn cancel(&self, pid: Pid, reason: impl Into<Arc<str>>) {
        self.0.cancel(pid, reason.into());
    }

    /// Ends a process at its next step boundary.
    pub fn kill(&self, pid: Pid) {
        self.0.kill(pid);
    }

    /// Cancels a process, and kills it if it has not ended after a while.
    pub fn cancel_then_kill(&self, pid: Pid, reason: impl Into<Arc<str>>, after: Duration) {
        self.cancel(pid, reason);
        let host = self.clone();
        let watch = async move {
            let deadline = Instant::now() + after;
            if timeout_at(deadline, host.ended(pid)).await.is_err() {
                host.kill(pid);
            }
        };
        drop(self.0.runtime.spawn(watch));
    }

    // ---- names ----

    // ---- looking inside ----

    /// Gives a process a name, until it ends.
    pub fn register(&self, name: impl Into<Arc<str>>, pid: Pid) -> Result<(), RegisterError> {
        let process = self.0.find(pid).ok_or(RegisterError::NoProcess)?;
        self.0.names.register(name.into(), &process)
    }

    /// Takes a name away. Returns the PID of the process that had it.
    pub fn unregister(&self, name: &str) -> Option<Pid> {
        self.0.names.unregister(name)
    }

    /// Returns the PID of the process with this name.
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.0.names.get(name).map(|process| process.shell().pid)
    }

    /// Returns the typed address of the process with this name, if it takes messages of this type.
    pub fn address_of<M: Send + 'static>(&self, name: &str) -> Option<Address<M>> {
        self.address(self.whereis(name)?)
    }

    // ---- looking inside ----

    /// Messages that were accepted and never read, because their process ended. Those of unbounded
    /// mailboxes are not counted.
    pub fn unread_at_exit(&self) -> u64 {
        self.0.unread_at_exit.load(Ordering::Relaxed)
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.0.population.live()
    }

    /// The processes there are, the oldest first.
    pub fn list(&self) -> Vec<ProcessInfo> {
        self.0
            .residents
            .all()
            .iter()
            .map(|process| info(&**process))
            .collect()
    }

    /// Ends the host: refuses new processes, cancels all (those of supervisors by their
    /// supervisors, from the top), lets them clean up until `timeout` (10 s is usual), kills the
    /// rest, and names what was killed and what could not be ended. When it returns, every join and
    /// monitor has its answer, and no step begins any more. A second call waits for the first.
    pub async fn shutdown(&self, timeout: Duration) -> StopReport {
        self.0.stop_all(timeout).await
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("name", &self.0.name())
            .field("processes", &self.processes())
            .finish()
    }
}

//! The host: where processes live, and how they are found.

mod info;
mod observe;
mod stop;

use std::any::Any;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use windlass_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use windlass_core::sync::{Mutex, Padded};
use windlass_runtime::frontend::RuntimeStopping;
use windlass_runtime::time::{Instant, timeout_at};
use windlass_runtime::{Handle, NoRuntime};
use windlass_sync::lock::Notify;

use self::info::info;
pub use self::info::{ProcessInfo, ProcessState};
use self::stop::Shutdown;
pub use self::stop::{Killed, StopReport, Stuck};
use crate::address::{Address, Ended};
use crate::bonds::{Peer, link_here};
use crate::command::{Commands, Handler};
use crate::error::{BuildError, RegisterError, SendError, SendErrorKind, SpawnError};
use crate::exit::{Bond, ExitReason, Exited, MonitorRef};
use crate::groups::Groups;
use crate::mail::MailboxPolicy;
use crate::message::Message;
use crate::relay::{Relay, RemoteSignal};
use crate::shell::{Core, Resident, Signal};
use crate::spawn::Spawn;
use crate::weigh::MAILBOX_BYTES;
use windlass_value::{NodeId, Pid};

/// A place for processes on a runtime. Cheap to clone.
///
/// Most programs never make one: [`spawn`](crate::spawn) uses the runtime's own, which is there from its
/// first use.
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
pub struct Host(pub(crate) Arc<Shared>);

/// What the processes of a host share.
pub(crate) struct Shared {
    pub(crate) runtime: Handle,
    node_id: NodeId,
    incarnation: u64,
    is_default: bool,
    counts: Padded<Counts>,
    monitors: AtomicU64,
    unread_at_exit: AtomicU64,
    shards: Vec<Padded<Mutex<Residents>>>,
    limit: usize,
    names: Mutex<BTreeMap<Arc<str>, Arc<dyn Resident>>>,
    pub(crate) groups: Groups,
    pub(crate) commands: Commands,
    relay: Option<Arc<dyn Relay>>,
    pub(crate) mailbox: MailboxPolicy,
    pub(crate) mailbox_bytes: usize,
    /// Told when the last process of a closed host has ended, and when a shutdown is over.
    emptied: Notify,
    shutdown: Mutex<Shutdown>,
}

/// What every spawn changes, on one line.
struct Counts {
    /// Processes there are, times two, and CLOSED.
    live: AtomicUsize,
    /// The number of the latest PID.
    latest: AtomicU64,
}

/// By number, which is not stored a second time: there can be very many.
type Residents = HashSet<ByNumber, BuildHasherDefault<Spread>>;

struct ByNumber(Arc<dyn Resident>);

impl Borrow<u64> for ByNumber {
    fn borrow(&self) -> &u64 {
        self.0.shell().pid.number_ref()
    }
}

impl Hash for ByNumber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrow::<u64>::borrow(self).hash(state);
    }
}

impl PartialEq for ByNumber {
    fn eq(&self, other: &ByNumber) -> bool {
        self.0.shell().pid == other.0.shell().pid
    }
}

impl Eq for ByNumber {}

/// Numbers that were counted are spread well enough by one multiplication, and the order of a table does
/// not depend on chance.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

const CLOSED: usize = 1;
const ONE: usize = 2;
/// Enough that two workers seldom meet.
const SHARDS: usize = 16;

/// Options of a [`Host`].
pub struct HostBuilder {
    name: String,
    node: Option<String>,
    limit: usize,
    mailbox: MailboxPolicy,
    mailbox_bytes: usize,
    relay: Option<Arc<dyn Relay>>,
    commands: Commands,
    twice: Option<&'static str>,
    is_default: bool,
}

impl HostBuilder {
    /// What its PIDs say before the bar; `local` otherwise.
    pub fn name(mut self, name: impl Into<String>) -> HostBuilder {
        self.name = name.into();
        self
    }

    /// The name of this program among others, for PIDs that leave it.
    pub fn node(mut self, node: impl Into<String>) -> HostBuilder {
        self.node = Some(node.into());
        self
    }

    /// The most processes at a time; a million otherwise.
    pub fn max_processes(mut self, most: usize) -> HostBuilder {
        self.limit = most;
        self
    }

    /// The mailboxes of processes that do not say otherwise; 1024 messages otherwise.
    pub fn mailbox(mut self, policy: MailboxPolicy) -> HostBuilder {
        self.mailbox = policy;
        self
    }

    /// The bytes that mailboxes hold of processes that do not say otherwise, in messages of more
    /// than a kilobyte; 64 MiB otherwise.
    pub fn mailbox_bytes(mut self, bytes: usize) -> HostBuilder {
        self.mailbox_bytes = bytes;
        self
    }

    /// The way to other nodes.
    pub fn relay(mut self, relay: Arc<dyn Relay>) -> HostBuilder {
        self.relay = Some(relay);
        self
    }

    /// Who carries out commands of type `C`. It runs on a worker and must not block: long work goes to
    /// [`Completer::spawn`](crate::command::Completer::spawn) or [`Completer::spawn_blocking`](crate::command::Completer::spawn_blocking).
    pub fn command<C: Any + Send>(mut self, handler: impl Handler<C>) -> HostBuilder {
        if !self.commands.add(handler) {
            self.twice = Some(std::any::type_name::<C>());
        }
        self
    }

    /// Makes the host. It ends with the runtime, or by [`Host::shutdown`].
    pub fn build(self, runtime: &Handle) -> Result<Host, BuildError> {
        let shared = self.make(runtime)?;
        runtime
            .attach(shared.clone())
            .map_err(|RuntimeStopping| BuildError::Stopping)?;
        Ok(Host(shared))
    }

    fn make(self, runtime: &Handle) -> Result<Arc<Shared>, BuildError> {
        if let Some(name) = self.twice {
            return Err(BuildError::CommandTwice(name));
        }
        if !self.mailbox.is_possible() {
            return Err(BuildError::NoRoom);
        }
        let node_id = NodeId::of(self.node.as_deref(), &self.name).map_err(BuildError::Name)?;
        let shards = std::iter::repeat_with(Padded::default).take(SHARDS);
        Ok(Arc::new(Shared {
            runtime: runtime.clone(),
            node_id,
            // A simulation has its own dice.
            incarnation: runtime.random(),
            is_default: self.is_default,
            counts: Padded(Counts {
                live: AtomicUsize::new(0),
                latest: AtomicU64::new(0),
            }),
            monitors: AtomicU64::new(0),
            unread_at_exit: AtomicU64::new(0),
            shards: shards.collect(),
            limit: self.limit,
            names: Mutex::default(),
            groups: Groups::default(),
            commands: self.commands,
            relay: self.relay,
            mailbox: self.mailbox,
            mailbox_bytes: self.mailbox_bytes,
            emptied: Notify::new(),
            shutdown: Mutex::default(),
        }))
    }
}

impl Host {
    /// Options with their defaults.
    pub fn builder() -> HostBuilder {
        HostBuilder {
            name: "local".to_owned(),
            node: None,
            limit: 1_000_000,
            mailbox: MailboxPolicy::default(),
            mailbox_bytes: MAILBOX_BYTES,
            relay: None,
            commands: Commands::with_built_ins(),
            twice: None,
            is_default: false,
        }
    }

    /// The host that a runtime has by itself, from its first use.
    pub fn of(runtime: &Handle) -> Result<Host, BuildError> {
        let own = |host: &Shared| host.is_default;
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

    /// The runtime below.
    pub fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    // ---- messages ----

    /// Sends a message to any process, here or on another node. Does not wait.
    pub fn send(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        self.0.route(to, message)
    }

    /// Sends a message to whoever has this name.
    pub fn send_to_name(&self, name: &str, message: Message) -> Result<(), SendError<Message>> {
        match self.0.named(name) {
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

    /// A node cannot be reached any more: links and monitors that lead there end with `NoConnection`.
    pub fn lose_node(&self, node: &str) {
        let lost =
            |pid: Pid| pid.node_id() != self.0.node_id && pid.node().as_deref() == Some(node);
        for process in self.0.all() {
            for exited in process.shell().bonds_to(&lost) {
                process.shell().tell_exit(exited);
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

    /// Tells a process to stop: an event, which it may take its time for.
    pub fn cancel(&self, pid: Pid, reason: impl Into<Arc<str>>) {
        self.0.cancel(pid, reason.into());
    }

    /// Ends a process at its next step boundary.
    pub fn kill(&self, pid: Pid) {
        self.0.kill(pid);
    }

    /// Tells a process to stop, and ends it if it has not after a while.
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

    /// Gives a process a name, until it ends.
    pub fn register(&self, name: impl Into<Arc<str>>, pid: Pid) -> Result<(), RegisterError> {
        let process = self.0.find(pid).ok_or(RegisterError::NoProcess)?;
        self.0.give_name(name.into(), &process)
    }

    /// Takes a name away; whose it was.
    pub fn unregister(&self, name: &str) -> Option<Pid> {
        let process = self.0.names.lock().remove(name)?;
        process.shell().forget_name(name);
        Some(process.shell().pid)
    }

    /// Who has this name.
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.0.named(name).map(|process| process.shell().pid)
    }

    /// The typed address of whoever has this name, if it takes messages of this type.
    pub fn address_of<M: Send + 'static>(&self, name: &str) -> Option<Address<M>> {
        self.address(self.whereis(name)?)
    }

    // ---- looking inside ----

    /// Messages that were accepted and never read, because their process ended. Those of unbounded mailboxes
    /// are not counted.
    pub fn unread_at_exit(&self) -> u64 {
        self.0.unread_at_exit.load(Ordering::Relaxed)
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.0.counts.live.load(Ordering::Acquire) / ONE
    }

    /// The processes there are, the oldest first.
    pub fn list(&self) -> Vec<ProcessInfo> {
        self.0
            .all()
            .iter()
            .map(|process| info(&**process))
            .collect()
    }

    /// Ends the host: refuses new processes, tells all to stop (those of supervisors by their supervisors,
    /// from the top), lets them clean up until `timeout` (10 s is usual), kills the rest, and names what
    /// was killed and what could not be ended. When it returns, every join and monitor has its answer, and no step begins any
    /// more. A second call waits for the first.
    pub async fn shutdown(&self, timeout: Duration) -> StopReport {
        self.0.stop_all(timeout).await
    }
}

/// There is no host where this was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoHost {
    /// This thread is in no runtime.
    NoRuntime(NoRuntime),
    /// The runtime is shutting down.
    Stopping,
}

impl fmt::Display for NoHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoHost::NoRuntime(error) => fmt::Display::fmt(error, f),
            NoHost::Stopping => f.write_str("the runtime is shutting down"),
        }
    }
}

impl std::error::Error for NoHost {}

impl Shared {
    // ---- who is there ----

    pub(crate) fn reserve(&self) -> Result<(), SpawnError> {
        let mut live = self.counts.live.load(Ordering::Relaxed);
        loop {
            if live & CLOSED != 0 {
                return Err(SpawnError::Stopping);
            }
            if live / ONE >= self.limit {
                return Err(SpawnError::LimitExceeded { limit: self.limit });
            }
            // Relaxed: a count; who is there is found through the shards' locks.
            match self.counts.live.compare_exchange_weak(
                live,
                live + ONE,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(changed) => live = changed,
            }
        }
    }

    /// Gives a reservation back: the process is closed. True: it was the last one of a closed host.
    pub(crate) fn release(&self) -> bool {
        // AcqRel: a shutdown that sees the last one go sees what it has done.
        self.counts.live.fetch_sub(ONE, Ordering::AcqRel) == ONE | CLOSED
    }

    /// Tells a shutdown that waits.
    pub(crate) fn tell_shutdown(&self) {
        self.emptied.notify_waiters();
    }

    pub(crate) fn new_pid(&self) -> Pid {
        // Relaxed: only its being another one counts.
        let number = self.counts.latest.fetch_add(1, Ordering::Relaxed) + 1;
        Pid::new(self.node_id, self.incarnation, number)
    }

    pub(crate) fn count_unread(&self, messages: usize) {
        if messages > 0 {
            // Relaxed: a count for people.
            self.unread_at_exit
                .fetch_add(messages as u64, Ordering::Relaxed);
        }
    }

    pub(crate) fn next_monitor(&self) -> u64 {
        self.monitors.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn shard(&self, pid: Pid) -> &Mutex<Residents> {
        &self.shards[pid.number() as usize % SHARDS]
    }

    pub(crate) fn enter_routing(&self, process: Arc<dyn Resident>) {
        let pid = process.shell().pid;
        self.shard(pid).lock().insert(ByNumber(process));
    }

    /// Whether new processes are refused. Asked after `enter_routing`: a shutdown that did not see the process
    /// in its shard has closed before, and is seen here.
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: the lock of the shard orders it.
        self.counts.live.load(Ordering::Relaxed) & CLOSED != 0
    }

    pub(crate) fn leave_routing(&self, pid: Pid) {
        let process = self.shard(pid).lock().take(pid.number_ref());
        drop(process);
    }

    fn is_own(&self, pid: Pid) -> bool {
        pid.node_id() == self.node_id && pid.incarnation() == self.incarnation
    }

    pub(crate) fn find(&self, pid: Pid) -> Option<Arc<dyn Resident>> {
        if !self.is_own(pid) {
            return None;
        }
        let shard = self.shard(pid).lock();
        shard.get(pid.number_ref()).map(|there| there.0.clone())
    }

    /// Whether this PID named a process here that has ended.
    pub(crate) fn is_gone(&self, pid: Pid) -> bool {
        pid.node_id() == self.node_id && self.find(pid).is_none()
    }

    /// Everybody, the oldest first.
    fn all(&self) -> Vec<Arc<dyn Resident>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.lock().iter().map(|there| there.0.clone()));
        }
        all.sort_unstable_by_key(|process| process.shell().pid);
        all
    }

    // ---- routing ----

    pub(crate) fn route(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        if let Some(process) = self.find(to) {
            return process.deliver(message);
        }
        if to.node_id() == self.node_id {
            // It has ended, or it is of an earlier incarnation.
            let kind = SendErrorKind::NoProcess;
            return Err(SendError { message, kind });
        }
        match &self.relay {
            Some(relay) => relay.route(to, message),
            None => Err(SendError {
                message,
                kind: SendErrorKind::NoConnection,
            }),
        }
    }

    /// Sends a signal to another node. What cannot be sent is answered as if the node were lost.
    pub(crate) fn send_signal(&self, to: Pid, signal: RemoteSignal) {
        let refused = match &self.relay {
            Some(relay) => relay.route_signal(to, signal).err().map(|e| e.message),
            None => Some(signal),
        };
        let (whom, by) = match refused {
            Some(RemoteSignal::Link(from)) => (from, Bond::Link),
            Some(RemoteSignal::Monitor { by, id }) => (by, Bond::Monitor(id)),
            _ => return,
        };
        if let Some(process) = self.find(whom) {
            process.shell().tell_exit(Exited {
                pid: to,
                reason: ExitReason::NoConnection,
                by,
            });
        }
    }

    fn receive_signal(&self, to: Pid, signal: RemoteSignal) {
        let process = self.find(to);
        let gone = |by| {
            RemoteSignal::Exited(Exited {
                pid: to,
                reason: ExitReason::NoProcess,
                by,
            })
        };
        match (signal, process) {
            (RemoteSignal::Link(from), Some(process)) => {
                if !process.shell().add_link(from, Peer::Elsewhere(from)) {
                    self.send_signal(from, gone(Bond::Link));
                }
            }
            (RemoteSignal::Link(from), None) => self.send_signal(from, gone(Bond::Link)),
            (RemoteSignal::Monitor { by, id }, Some(process)) => {
                if !process.shell().add_observer(by, id, Peer::Elsewhere(by)) {
                    self.send_signal(by, gone(Bond::Monitor(id)));
                }
            }
            (RemoteSignal::Monitor { by, id }, None) => {
                self.send_signal(by, gone(Bond::Monitor(id)));
            }
            (RemoteSignal::Unlink(from), Some(process)) => {
                process.shell().remove_link(from);
            }
            (RemoteSignal::Demonitor { by, id }, Some(process)) => {
                process.shell().remove_observer(by, id);
            }
            (RemoteSignal::Exited(exited), Some(process)) => process.shell().tell_exit(exited),
            (RemoteSignal::Cancel(reason), Some(process)) => {
                process.shell().signal(Signal::Cancel(reason));
            }
            (RemoteSignal::Kill, Some(process)) => {
                process.shell().kill();
            }
            (_, None) => {}
        }
    }

    // ---- bonds ----

    /// Links `one` to another process; it is told at once if that has ended.
    pub(crate) fn link(&self, one: &Arc<dyn Resident>, to: Pid) {
        let from = one.shell().pid;
        if from == to {
            return;
        }
        if !self.is_own(to) && to.node_id() != self.node_id {
            if one.shell().add_link(to, Peer::Elsewhere(to)) {
                self.send_signal(to, RemoteSignal::Link(from));
            }
            return;
        }
        let linked = self.find(to).is_some_and(|other| link_here(one, &other));
        if !linked && one.shell().add_link(to, Peer::Elsewhere(to)) {
            one.shell().tell_exit(Exited {
                pid: to,
                reason: ExitReason::NoProcess,
                by: Bond::Link,
            });
        }
    }

    pub(crate) fn unlink(&self, one: &dyn Resident, to: Pid) {
        // The news of its end may be on the way; without the link it does not count.
        one.shell().remove_link(to);
        match self.find(to) {
            Some(other) => {
                other.shell().remove_link(one.shell().pid);
            }
            None if to.node_id() != self.node_id => {
                self.send_signal(to, RemoteSignal::Unlink(one.shell().pid));
            }
            None => {}
        }
    }

    /// Lets `watcher` know of the end of another process; at once if that has ended.
    pub(crate) fn monitor(&self, watcher: &Arc<dyn Resident>, target: Pid) -> MonitorRef {
        let by = watcher.shell().pid;
        let Some(id) = watcher.shell().new_monitor(target) else {
            // The watcher has ended itself; nobody is there to be told.
            return MonitorRef(0);
        };
        if !self.is_own(target) && target.node_id() != self.node_id {
            self.send_signal(target, RemoteSignal::Monitor { by, id });
            return id;
        }
        let peer = Peer::Here(watcher.clone());
        let added = self
            .find(target)
            .is_some_and(|process| process.shell().add_observer(by, id, peer));
        if !added {
            watcher.shell().tell_exit(Exited {
                pid: target,
                reason: ExitReason::NoProcess,
                by: Bond::Monitor(id),
            });
        }
        id
    }

    pub(crate) fn demonitor(&self, watcher: &dyn Resident, id: MonitorRef) {
        if let Some(target) = watcher.shell().end_monitor(id) {
            self.end_monitor(target, watcher.shell().pid, id);
        }
    }

    pub(crate) fn end_monitor(&self, target: Pid, by: Pid, id: MonitorRef) {
        match self.find(target) {
            Some(process) => process.shell().remove_observer(by, id),
            None if target.node_id() != self.node_id => {
                self.send_signal(target, RemoteSignal::Demonitor { by, id });
            }
            None => {}
        }
    }

    pub(crate) fn cancel(&self, pid: Pid, reason: Arc<str>) {
        match self.find(pid) {
            Some(process) => process.shell().signal(Signal::Cancel(reason)),
            None if pid.node_id() != self.node_id => {
                self.send_signal(pid, RemoteSignal::Cancel(reason));
            }
            None => {}
        }
    }

    pub(crate) fn kill(&self, pid: Pid) {
        match self.find(pid) {
            Some(process) => {
                process.shell().kill();
            }
            None if pid.node_id() != self.node_id => self.send_signal(pid, RemoteSignal::Kill),
            None => {}
        }
    }

    // ---- names ----

    pub(crate) fn named(&self, name: &str) -> Option<Arc<dyn Resident>> {
        self.names.lock().get(name).cloned()
    }

    pub(crate) fn give_name(
        &self,
        name: Arc<str>,
        process: &Arc<dyn Resident>,
    ) -> Result<(), RegisterError> {
        let mut names = self.names.lock();
        if let Some(owner) = names.get(&name) {
            let owner = owner.shell().pid;
            if owner == process.shell().pid {
                return Ok(());
            }
            return Err(RegisterError::Taken { owner });
        }
        // Under the lock of the names: the process releases what it has noted when it ends.
        if !process.shell().note_name(&name) {
            return Err(RegisterError::NoProcess);
        }
        names.insert(name, process.clone());
        Ok(())
    }

    pub(crate) fn release_names(&self, pid: Pid, names: &[Arc<str>]) {
        if names.is_empty() {
            return;
        }
        let mut there = self.names.lock();
        for name in names {
            if there
                .get(name)
                .is_some_and(|owner| owner.shell().pid == pid)
            {
                there.remove(name);
            }
        }
    }

    pub(crate) fn leave_groups(&self, pid: Pid, groups: &[Arc<str>]) {
        for group in groups {
            self.groups.remove(group, pid);
        }
    }

    fn name(&self) -> Arc<str> {
        Pid::new(self.node_id, 0, 0).host()
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

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder")
            .field("name", &self.name)
            .field("node", &self.node)
            .field("max_processes", &self.limit)
            .field("mailbox", &self.mailbox)
            .finish_non_exhaustive()
    }
}

//! A guest as others see it: its shared half in the VM, and the handle to wait for it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use smallvec::SmallVec;
use windlass_actor::{
    Exit, ExitReason, Exited, Host, Message, Pattern, Payload, Pid, ProcessContext,
};
use windlass_core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use windlass_core::sync::{Mutex, MutexGuard};
use windlass_core::task::AbortHandle;

use crate::exception::Exception;
use crate::guest::{Answer, Ending, Guest};
use crate::limits::Limits;
use crate::object::{Channel, Mutex as VmMutex, Semaphore, Waiter};
use crate::reason::{Custom, Reason, ReasonKind};
use crate::vm::Shared;
use windlass_sync::park::{Arrived, Generation, Park, ParkState, Wait};

/// What is to be undone when a wait ends in another way than it was meant to.
#[derive(Debug)]
pub(crate) struct Undo {
    pub(crate) kind: ReasonKind,
    pub(crate) timer: Timer,
    pub(crate) queue: Queue,
}

/// A timer of a wait.
#[derive(Debug)]
pub(crate) enum Timer {
    None,
    /// A task of the runtime.
    Task(AbortHandle),
    /// An entry among the reactor's deadlines.
    Deadline((u64, u64)),
}

/// Where a wait stands in line.
#[derive(Debug)]
pub(crate) enum Queue {
    None,
    Channel(Channel),
    Mutex(VmMutex),
    Semaphore(Semaphore),
    Task(Arc<GuestShared>),
    Mail,
}

impl Queue {
    /// Where a wait for this stands.
    pub(crate) fn of(reason: &Reason) -> Queue {
        match reason {
            Reason::AwaitTask(task) => Queue::Task(task.guest.clone()),
            Reason::MutexLock(mutex) => Queue::Mutex(mutex.clone()),
            Reason::SemaphoreAcquire(semaphore, _) => Queue::Semaphore(semaphore.clone()),
            Reason::ChannelSend(channel, _) | Reason::ChannelReceive(channel) => {
                Queue::Channel(channel.clone())
            }
            Reason::Receive { .. } | Reason::Exit => Queue::Mail,
            Reason::Sleep(_) | Reason::IoWait(_) | Reason::Custom(_) | Reason::Begun => Queue::None,
        }
    }
}

/// The shared half of a guest.
pub(crate) struct GuestShared {
    pub(crate) vm: Arc<Shared>,
    /// Its number in the VM's table of guests.
    entry: u64,
    /// Set when its process is made.
    context: OnceLock<ProcessContext>,
    /// Another PID, as a recording knows it.
    pub(crate) recorded_pid: OnceLock<Pid>,
    /// Its number in a recording, from 1; 0 before it has one.
    pub(crate) number: AtomicU64,
    /// What its guest is called.
    name: Option<Arc<str>>,
    /// Who spawned it.
    parent: Option<Weak<GuestShared>>,
    /// Its own tasks that have not ended.
    pub(crate) tasks: AtomicUsize,
    pub(crate) limits: Limits,
    park: Park<Ending, Undo>,
    resources: Mutex<Resources>,
    pub(crate) mail: Mutex<Mail>,
    /// False: nobody waits for what is in `mail`. A hint, changed under its lock.
    wants_mail: AtomicBool,
    /// It was told to stop while nothing waited: the next wait ends so.
    cancelled: Mutex<Option<Arc<str>>>,
    pub(crate) stop_asked: AtomicBool,
    /// Nanoseconds on a processor.
    pub(crate) cpu: AtomicU64,
    completion: Mutex<Completion>,
    handles: AtomicUsize,
    /// The guest itself, while nobody steps it; only on the reactor.
    pub(crate) stored: Mutex<Option<Box<dyn Guest>>>,
}

impl Drop for GuestShared {
    fn drop(&mut self) {
        self.vm.guests.remove(self.entry);
    }
}

/// The locks and permits that a guest has. It gives them back at its end.
#[derive(Default)]
pub(crate) struct Resources {
    pub(crate) mutexes: Vec<VmMutex>,
    permits: Vec<(Semaphore, usize)>,
}

/// What came to the process and is not the guest's yet.
#[derive(Default)]
pub(crate) struct Mail {
    /// Waits for messages, the oldest first.
    pub(crate) receives: Vec<Receive>,
    /// Waits for the ends of others.
    pub(crate) exits: Vec<Generation>,
    /// Messages that were taken for a wait that had ended meanwhile: they come before the mailbox.
    pub(crate) returned: VecDeque<Message>,
    pub(crate) notices: VecDeque<Exited>,
    /// Commands that its process has to ask for.
    pub(crate) customs: Vec<(Generation, Custom)>,
}

impl Mail {
    /// Nobody waits for what the process could give or ask for.
    fn is_quiet(&self) -> bool {
        self.receives.is_empty() && self.exits.is_empty() && self.customs.is_empty()
    }
}

/// A wait for a message.
pub(crate) struct Receive {
    pub(crate) generation: Generation,
    pub(crate) pattern: Pattern,
    /// It ends at once if there is none.
    pub(crate) now: bool,
}

/// How a guest ended, or the waits for its end.
#[derive(Default)]
struct Completion {
    result: Option<Result<Payload, ExitReason>>,
    /// Nearly always one.
    waiters: SmallVec<[Waiter; 1]>,
    /// Whether a waiter or a handle has got the result.
    awaited: bool,
    reported: bool,
}

impl Resources {
    /// True if it was there.
    pub(crate) fn let_go_of(&mut self, mutex: &VmMutex) -> bool {
        let place = self.mutexes.iter().position(|held| held.is(mutex));
        place.map(|place| self.mutexes.remove(place)).is_some()
    }

    pub(crate) fn add_permits(&mut self, semaphore: &Semaphore, permits: usize) {
        match self.permits.iter_mut().find(|(s, _)| s.is(semaphore)) {
            Some((_, held)) => *held += permits,
            None => self.permits.push((semaphore.clone(), permits)),
        }
    }

    /// True if it had so many.
    pub(crate) fn remove_permits(&mut self, semaphore: &Semaphore, permits: usize) -> bool {
        let Some(place) = self.permits.iter().position(|(s, _)| s.is(semaphore)) else {
            return false;
        };
        if self.permits[place].1 < permits {
            return false;
        }
        self.permits[place].1 -= permits;
        if self.permits[place].1 == 0 {
            self.permits.remove(place);
        }
        true
    }
}

impl GuestShared {
    pub(crate) fn new(
        vm: &Arc<Shared>,
        stored: Option<Box<dyn Guest>>,
        name: Option<Arc<str>>,
        limits: Limits,
        parent: Option<&Arc<GuestShared>>,
    ) -> Arc<GuestShared> {
        let entry = vm.guests.next_number();
        let guest = Arc::new(GuestShared {
            vm: vm.clone(),
            entry,
            context: OnceLock::new(),
            recorded_pid: OnceLock::new(),
            number: AtomicU64::new(0),
            name,
            parent: parent.map(Arc::downgrade),
            tasks: AtomicUsize::new(0),
            limits,
            park: Park::new(),
            resources: Mutex::default(),
            mail: Mutex::default(),
            wants_mail: AtomicBool::new(false),
            cancelled: Mutex::default(),
            stop_asked: AtomicBool::new(false),
            cpu: AtomicU64::new(0),
            completion: Mutex::default(),
            handles: AtomicUsize::new(0),
            stored: Mutex::new(stored),
        });
        vm.guests.add(entry, &guest);
        guest
    }

    /// The name that its guest gave.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// The PID of the guest that spawned it, if that is still there.
    pub(crate) fn parent_pid(&self) -> Option<Pid> {
        let parent = self.parent.as_ref()?.upgrade()?;
        parent.context.get().map(ProcessContext::pid)
    }

    pub(crate) fn set_context(&self, context: ProcessContext) {
        let _ = self.context.set(context);
    }

    /// Its process; None before that is made.
    pub(crate) fn context(&self) -> Option<&ProcessContext> {
        self.context.get()
    }

    /// Its PID, as guests see it.
    pub(crate) fn pid(&self) -> Pid {
        let own = || self.context.get().map(ProcessContext::pid);
        let recorded = self.recorded_pid.get().copied();
        recorded
            .or_else(own)
            .expect("its process is made before it is known")
    }

    /// How people know it: its name, if it has one, and its PID.
    pub(crate) fn shown(&self) -> String {
        let pid = self.context.get().map(ProcessContext::pid);
        match (&self.name, pid) {
            (Some(name), Some(pid)) => format!("{name} {pid}"),
            (Some(name), None) => name.to_string(),
            (None, Some(pid)) => pid.to_string(),
            (None, None) => "that has no process yet".to_owned(),
        }
    }

    /// Asks for a step of its process.
    pub(crate) fn request_step(&self) {
        if let Some(context) = self.context.get() {
            context.request_step();
        }
    }

    pub(crate) fn with_resources<T>(&self, change: impl FnOnce(&mut Resources) -> T) -> T {
        change(&mut self.resources.lock())
    }

    /// Adds something that the process has to look for or to ask for.
    pub(crate) fn want(&self, add: impl FnOnce(&mut Mail)) {
        let mut mail = self.mail.lock();
        add(&mut mail);
        self.wants_mail.store(true, Ordering::Relaxed);
    }

    /// What the process has to look for; None if that is nothing.
    pub(crate) fn wanted_mail(&self) -> Option<MutexGuard<'_, Mail>> {
        // Relaxed: whoever wants something requests a step of the process after that, or is the
        // thread of the process.
        if !self.wants_mail.load(Ordering::Relaxed) {
            return None;
        }
        let mail = self.mail.lock();
        if mail.is_quiet() {
            self.wants_mail.store(false, Ordering::Relaxed);
            return None;
        }
        Some(mail)
    }

    // ---- waits ----

    /// Begins a wait. None if the guest is no more, or was told to stop: then the wait has ended already.
    pub(crate) fn begin_wait(
        self: &Arc<GuestShared>,
        tag: u64,
        kind: ReasonKind,
        queue: Queue,
    ) -> Option<Waiter> {
        let undo = Undo {
            kind,
            timer: Timer::None,
            queue,
        };
        let generation = self.park.begin(tag, undo)?;
        self.vm.counts.parked(kind, 1);
        let waiter = Waiter {
            guest: self.clone(),
            generation,
        };
        if self.stop_asked.load(Ordering::Relaxed)
            && let Some(reason) = self.cancelled.lock().take()
        {
            let _ = waiter.end(Err(Exception::Cancelled(reason)));
            return None;
        }
        Some(waiter)
    }

    pub(crate) fn set_timer(&self, generation: Generation, timer: Timer) {
        let mut timer = Some(timer);
        let there = self.park.change(generation, |undo| {
            undo.timer = timer.take().unwrap_or(Timer::None);
        });
        if !there && let Some(timer) = timer {
            self.drop_timer(timer);
        }
    }

    /// Ends a wait and wakes the guest.
    pub(crate) fn end_wait(
        self: &Arc<GuestShared>,
        generation: Generation,
        ending: Ending,
    ) -> Result<(), Ending> {
        let ended = self.park.end(generation, ending)?;
        self.vm.counts.parked(ended.undo.kind, -1);
        self.drop_timer(ended.undo.timer);
        if let Queue::Mail = ended.undo.queue {
            self.forget_mail(generation);
        }
        if ended.wakes {
            self.wake();
        }
        Ok(())
    }

    /// Takes a wait back.
    pub(crate) fn withdraw(self: &Arc<GuestShared>, tag: u64) {
        if let Some(wait) = self.park.withdraw(tag) {
            self.undo(wait);
        }
    }

    fn undo(self: &Arc<GuestShared>, wait: Wait<Undo>) {
        let generation = wait.generation;
        self.vm.counts.parked(wait.undo.kind, -1);
        self.drop_timer(wait.undo.timer);
        match wait.undo.queue {
            Queue::None => {}
            Queue::Channel(channel) => channel.forget(self, generation),
            Queue::Mutex(mutex) => mutex.forget(self, generation),
            Queue::Semaphore(semaphore) => semaphore.forget(self, generation),
            Queue::Task(task) => {
                let mut completion = task.completion.lock();
                completion.waiters.retain(|w| !w.is(self, generation));
            }
            Queue::Mail => self.forget_mail(generation),
        }
    }

    fn forget_mail(&self, generation: Generation) {
        let mut mail = self.mail.lock();
        mail.receives.retain(|wait| wait.generation != generation);
        mail.exits.retain(|g| *g != generation);
    }

    fn drop_timer(&self, timer: Timer) {
        match timer {
            Timer::None => {}
            Timer::Task(task) => task.abort(),
            Timer::Deadline(key) => self.vm.remove_deadline(key),
        }
    }

    /// It shall stop: everything it waits for ends with that, or the next thing it waits for.
    pub(crate) fn cancel(self: &Arc<GuestShared>, reason: Arc<str>) {
        // Relaxed: a hint for who runs it; what counts is under the lock.
        self.stop_asked.store(true, Ordering::Relaxed);
        let (waits, wakes) = self
            .park
            .end_all(|| Err(Exception::Cancelled(reason.clone())));
        if waits.is_empty() {
            *self.cancelled.lock() = Some(reason);
        }
        for wait in waits {
            self.undo(wait);
        }
        if wakes {
            self.wake();
        }
    }

    /// Why it was told to stop, if no wait has told it yet.
    pub(crate) fn cancel_reason(&self) -> Option<Arc<str>> {
        match self.stop_asked.load(Ordering::Relaxed) {
            true => self.cancelled.lock().clone(),
            false => None,
        }
    }

    /// The guest is about to wait: true if it may.
    pub(crate) fn park(&self) -> bool {
        let parked = self.park.park();
        if parked {
            self.vm.went_idle();
        }
        parked
    }

    /// What has arrived.
    pub(crate) fn arrived(&self) -> Arrived<Ending> {
        self.park.take()
    }

    /// Whether something has arrived.
    pub(crate) fn has_arrived(&self) -> bool {
        self.park.has_arrived()
    }

    /// Something that came to its process ends a wait; a message that nobody waits for any more stays.
    pub(crate) fn input(self: &Arc<GuestShared>, generation: Generation, ending: Ending) {
        match self.end_wait(generation, ending) {
            Err(Ok(Answer::Message(message))) => self.mail.lock().returned.push_back(message),
            Err(Ok(Answer::Exited(exited))) => self.mail.lock().notices.push_front(exited),
            _ => {}
        }
    }

    /// What it waits for, in the order in which it began to.
    pub(crate) fn waits_for(&self) -> Vec<ReasonKind> {
        let mut kinds = Vec::new();
        self.park.each(|wait| kinds.push(wait.undo.kind));
        kinds
    }

    fn wake(self: &Arc<GuestShared>) {
        self.vm.woke_up();
        self.vm.wake(self);
    }

    // ---- the end ----

    /// The guest has ended: what it held goes back, who waits for it is told. The first end counts.
    pub(crate) fn finish(self: &Arc<GuestShared>, result: Result<Payload, ExitReason>) {
        let (waits, was) = self.park.close();
        if was == ParkState::Closed {
            return;
        }
        for wait in waits {
            self.undo(wait);
        }
        let resources = self.with_resources(std::mem::take);
        for mutex in resources.mutexes {
            mutex.pass_on(self);
        }
        for (semaphore, permits) in resources.permits {
            semaphore.release(permits);
        }
        let mut completion = self.completion.lock();
        for waiter in std::mem::take(&mut completion.waiters) {
            let notified = waiter.end(self.ending_of(&result));
            completion.awaited |= notified.is_ok();
        }
        completion.result = Some(result);
        drop(completion);
        if let Some(parent) = self.parent.as_ref().and_then(Weak::upgrade) {
            parent.tasks.fetch_sub(1, Ordering::Relaxed);
        }
        if self.handles.load(Ordering::SeqCst) == 0 {
            self.report();
        }
        if was == ParkState::Awake {
            self.vm.went_idle();
        }
    }

    /// How it ended.
    pub(crate) fn result(&self) -> Option<Result<Payload, ExitReason>> {
        self.completion.lock().result.clone()
    }

    fn ending_of(&self, result: &Result<Payload, ExitReason>) -> Ending {
        match result {
            Ok(value) => Ok(Answer::Value(value.clone())),
            Err(reason) => Err(Exception::TaskFailed {
                task: self.pid(),
                reason: reason.clone(),
            }),
        }
    }

    /// Lets this wait end with the guest.
    pub(crate) fn await_by(self: &Arc<GuestShared>, waiter: Waiter) {
        let mut completion = self.completion.lock();
        match &completion.result {
            Some(result) => {
                let notified = waiter.end(self.ending_of(result));
                completion.awaited |= notified.is_ok();
            }
            None => completion.waiters.push(waiter),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.completion.lock().result.is_some()
    }

    /// Tells of a failure that nobody has got and nobody can get any more. Once.
    fn report(&self) {
        let mut completion = self.completion.lock();
        let failed = match &completion.result {
            Some(Err(reason @ (ExitReason::Error(_) | ExitReason::Panic(_)))) => reason.clone(),
            _ => return,
        };
        if completion.awaited || completion.reported {
            return;
        }
        completion.reported = true;
        drop(completion);
        self.vm.report(Uncaught {
            task: self.pid(),
            reason: failed,
        });
    }
}

impl fmt::Debug for GuestShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuestShared({:?})", self.context.get())
    }
}

/// A failure of a task that nobody awaited.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Uncaught {
    /// Which task.
    pub task: Pid,
    /// Why it failed.
    pub reason: ExitReason,
}

impl fmt::Display for Uncaught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "task {} failed and nobody awaited it: {}",
            self.task, self.reason
        )
    }
}

/// A guest that was started, and the way to wait for it, for guests ([`Reason::AwaitTask`](crate::Reason)) and
/// for Rust code ([`join`](Task::join)).
///
/// Dropping it changes nothing about the guest. If the guest fails, and the last handle goes without anybody
/// having awaited it, the failure is reported ([`Builder::on_uncaught`](crate::Builder::on_uncaught)).
pub struct Task {
    pub(crate) guest: Arc<GuestShared>,
}

impl Task {
    pub(crate) fn new(guest: Arc<GuestShared>) -> Task {
        guest.handles.fetch_add(1, Ordering::SeqCst);
        Task { guest }
    }

    /// Its PID.
    pub fn pid(&self) -> Pid {
        self.guest.pid()
    }

    fn host(&self) -> Option<(Host, Pid)> {
        let context = self.guest.context()?;
        Some((context.host(), context.pid()))
    }

    /// Waits for its end.
    pub async fn join(&self) -> Exit {
        self.guest.completion.lock().awaited = true;
        let context = self.guest.context().expect("a task has a process");
        context.address().ended().await
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.guest.is_over()
    }

    /// Tells it to stop: whatever it waits for ends with [`Exception::Cancelled`].
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
        // SeqCst, as the load in `finish`: one of the two sees that nobody is left, and `report` sees who was first.
        if self.guest.handles.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.guest.report();
        }
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

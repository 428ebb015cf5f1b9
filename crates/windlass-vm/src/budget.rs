//! What a guest has in a step: its slice of time, and the way to everything outside of it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_actor::{Message, Pid, ProcessContext, SendErrorKind};
use windlass_core::sync::atomic::{AtomicU32, Ordering};
use windlass_core::sync::clock;
use windlass_value::Payload;

use crate::effects::Op;
use crate::error::SpawnError;
use crate::exception::Exception;
use crate::guest::Guest;
use crate::guest_shared::GuestShared;
use crate::limits::Limits;
use crate::object::{Channel, Mutex, Semaphore};
use crate::reason::Reason;
use crate::record::{AnswerLog, shown, shown_value};
use crate::slot::{Bell, Slot};
use crate::spawn::SpawnOptions;
use crate::task::Task;
use crate::vm::VmShared;

/// The slice of a step, and what the guest may do in it.
///
/// A slice is over when the runtime says so (a flag), or, where time does not count (in recordings
/// and simulations), after a number of instructions. [`spend`](Budget::spend) knows both.
/// Interpreters that cannot afford a call in every loop read the [`flag`](Budget::flag) themselves;
/// it stays where it is during the step.
pub struct Budget<'a> {
    pub(crate) vm: &'a Arc<VmShared>,
    pub(crate) guest: &'a Arc<GuestShared>,
    pub(crate) slot: &'a Slot,
    /// Instructions left; only where they count.
    left: Cell<u64>,
    spent: Cell<u64>,
    counting: bool,
    /// What it was answered, where that is written down or read.
    answers: RefCell<AnswerLog>,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(
        vm: &'a Arc<VmShared>,
        guest: &'a Arc<GuestShared>,
        slot: &'a Slot,
        answers: AnswerLog,
    ) -> Budget<'a> {
        let counting = vm.counting;
        Budget {
            vm,
            guest,
            slot,
            left: Cell::new(vm.slice_count),
            spent: Cell::new(0),
            counting,
            answers: RefCell::new(answers),
        }
    }

    pub(crate) fn into_answers(self) -> (AnswerLog, u64) {
        (self.answers.into_inner(), self.spent.get())
    }

    // ---- the slice ----

    /// Says that so many instructions were executed; true if the slice is over.
    #[inline]
    pub fn spend(&self, instructions: u64) -> bool {
        if !self.counting {
            return self.slot.is_asked();
        }
        self.spent.set(self.spent.get() + instructions);
        let left = self.left.get().saturating_sub(instructions);
        self.left.set(left);
        left == 0
    }

    /// Whether the slice is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        match self.counting {
            true => self.left.get() == 0,
            false => self.slot.is_asked(),
        }
    }

    /// How many instructions are left, where they count; None where time does. An interpreter that
    /// gets a number must say what it has [spent](Budget::spend), exactly.
    pub fn instructions(&self) -> Option<u64> {
        self.counting.then(|| self.left.get())
    }

    /// Not 0 when the slice is over; for interpreters and compiled code that read it directly. It
    /// stays at its place during the step.
    pub fn flag(&self) -> &AtomicU32 {
        self.slot.flag()
    }

    /// Has this rung when the slice is over, until the step ends.
    pub fn set_bell(&self, bell: Arc<dyn Bell>) {
        if !self.counting {
            self.slot.set_bell(bell);
        }
    }

    /// Says that the guest has several things that could go on: its slice ends also if no other
    /// guest waits.
    pub fn share(&self) {
        if !self.counting && self.slot.share() {
            self.vm.look_again();
        }
    }

    /// What the guest may use.
    pub fn limits(&self) -> &Limits {
        &self.guest.limits
    }

    /// Returns the reason of the cancel, as long as no wait has ended with it; the next wait will.
    pub fn cancel_reason(&self) -> Option<Arc<str>> {
        // Not while it is written down: when it is seen depends on the moment.
        match self.counting {
            true => None,
            false => self.guest.cancel_reason(),
        }
    }

    /// Whether the guest was ended from outside, or has used up its time: the step should come to
    /// an end, also where it could not yield.
    pub fn must_end(&self) -> bool {
        let killed = || self.guest.context().is_some_and(ProcessContext::is_killed);
        self.guest.is_over() || killed() || (!self.counting && self.is_over_limit())
    }

    fn is_over_limit(&self) -> bool {
        self.guest.limits.cpu.is_some_and(|most| {
            let since = self.slot.since();
            let now = clock::now();
            self.cpu_time() + Duration::from_nanos(now.saturating_sub(since)) > most
        })
    }

    /// How long it has run on a processor before this step.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.guest.cpu.load(Ordering::Relaxed))
    }

    // ---- waits beside each other ----

    /// Begins a wait and goes on; its end comes in a [`Resume::Several`](crate::Resume::Several)
    /// with this tag, after a [`Step::Yield`](crate::Step::Yield) or a suspension on
    /// [`Reason::Begun`]. For guests with several things under way.
    pub fn begin(&self, tag: u64, reason: Reason) {
        self.vm
            .perform_or_post(self.guest, Op::Begin { tag, reason });
    }

    /// Takes a wait back that was begun with this tag. If it has ended already, its end still
    /// comes.
    pub fn withdraw(&self, tag: u64) {
        self.vm.perform_or_post(self.guest, Op::Withdraw { tag });
    }

    // ---- what guests share ----

    /// A new channel; with a capacity of 0 a sender waits for its receiver.
    pub fn channel(&self, capacity: usize) -> Channel {
        Channel::new(self.id(), capacity)
    }

    /// A new mutex.
    pub fn mutex(&self) -> Mutex {
        Mutex::new(self.id())
    }

    /// A new semaphore.
    pub fn semaphore(&self, permits: usize) -> Semaphore {
        Semaphore::new(self.id(), permits)
    }

    fn id(&self) -> u64 {
        match self.ask(|_| Payload::Int(self.vm.next_id() as i64)) {
            Payload::Int(id) => id as u64,
            _ => 0,
        }
    }

    /// Gives a mutex back. The longest waiter has it next.
    pub fn unlock(&self, mutex: &Mutex) -> Result<(), Exception> {
        if !self
            .guest
            .with_resources(|resources| resources.let_go_of(mutex))
        {
            return Err(Exception::NotOwner);
        }
        self.vm
            .perform_or_post(self.guest, Op::Unlock(mutex.clone()));
        Ok(())
    }

    /// Gives permits back.
    pub fn release(&self, semaphore: &Semaphore, permits: usize) -> Result<(), Exception> {
        if !self
            .guest
            .with_resources(|resources| resources.remove_permits(semaphore, permits))
        {
            return Err(Exception::NotOwner);
        }
        self.vm
            .perform_or_post(self.guest, Op::Release(semaphore.clone(), permits));
        Ok(())
    }

    /// Closes a channel: its waiters are notified, and the values in it can still be received.
    pub fn close(&self, channel: &Channel) {
        self.vm
            .perform_or_post(self.guest, Op::Close(channel.clone()));
    }

    // ---- the outside ----

    /// Starts another guest in the same VM.
    pub fn spawn(&self, guest: impl Guest) -> Result<Task, SpawnError> {
        self.spawn_with(guest, SpawnOptions::default())
    }

    /// Starts another guest, with what else there is to say.
    pub fn spawn_with(&self, guest: impl Guest, options: SpawnOptions) -> Result<Task, SpawnError> {
        let task = self
            .vm
            .spawn_from(Some(self.guest), Box::new(guest), options)?;
        let pid = task.pid();
        if let Payload::Pid(recorded) = self.ask(|_| Payload::Pid(pid))
            && recorded != pid
        {
            let _ = task.guest.recorded_pid.set(recorded);
        }
        self.vm
            .perform_or_post(self.guest, Op::Spawned(task.guest.clone()));
        Ok(task)
    }

    /// Cancels another task.
    pub fn cancel(&self, task: &Task, reason: impl Into<Arc<str>>) {
        let reason = reason.into();
        self.ask(|_| {
            task.cancel(reason);
            Payload::Nil
        });
    }

    /// The process of this guest.
    pub fn pid(&self) -> Pid {
        self.guest.pid()
    }

    /// Asks something of the outside, and is answered at once. What this gives is written down in a
    /// recording, and in a replay the answer is read there, without asking: everything that a guest
    /// does not compute itself has to come this way, or by a wait.
    pub fn ask(&self, question: impl FnOnce(&ProcessContext) -> Payload) -> Payload {
        let context = self.guest.context().expect("a guest has a process");
        self.answers.borrow_mut().answer(|| question(context))
    }

    /// Says that the guest did something that others can see and that is no message and no wait,
    /// such as printing. A recording has it, and a replay in which the guest does something else
    /// is different. `what` is called only where that counts.
    pub fn note(&self, what: impl FnOnce() -> String) {
        // Inside of a question there is nothing to note: a replay does not ask it.
        if let Ok(mut answers) = self.answers.try_borrow_mut() {
            answers.note(|| shown(&what()));
        }
    }

    /// Sends a message, which says that it is from this guest.
    pub fn send(&self, to: Pid, message: Message) -> Result<(), SendErrorKind> {
        self.answers.borrow_mut().note(|| {
            let value = shown_value(&message.payload);
            format!("sent {} to {to}: {value}", message.topic)
        });
        let answer = self.ask(|context| match context.send(to, message) {
            Ok(()) => Payload::Nil,
            Err(error) => Payload::Int(match error.kind {
                SendErrorKind::Full => 1,
                SendErrorKind::NoConnection => 3,
                SendErrorKind::NotUnderstood => 4,
                SendErrorKind::TooLarge => 5,
                _ => 2,
            }),
        });
        match answer {
            Payload::Int(1) => Err(SendErrorKind::Full),
            Payload::Int(3) => Err(SendErrorKind::NoConnection),
            Payload::Int(4) => Err(SendErrorKind::NotUnderstood),
            Payload::Int(5) => Err(SendErrorKind::TooLarge),
            Payload::Int(_) => Err(SendErrorKind::NoProcess),
            _ => Ok(()),
        }
    }

    /// The monotonic clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        match self.ask(|_| Payload::Int(clock::now() as i64)) {
            Payload::Int(now) => now as u64,
            _ => 0,
        }
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        match self.ask(|_| Payload::Int(self.vm.runtime.random() as i64)) {
            Payload::Int(number) => number as u64,
            _ => 0,
        }
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("over", &self.is_over())
            .field("instructions", &self.instructions())
            .finish_non_exhaustive()
    }
}

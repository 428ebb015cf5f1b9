//! What is known of a process from outside: its PID, its mail, its signals, its bonds.
//!
//! # Who owns what
//! The *runner* (the task's body) owns the code of the process, the reading ends of both queues and the
//! state of the process. Everybody else has the [`Core`]: they push letters, set KILLED, and read what the
//! runner publishes. Wakes go through the task's own state word and nothing else (`Shell::wake`).
//!
//! # The flags
//! RUNNING and KILLED are in one word, so that one of the two sees the other: a step that begins after a
//! kill sees KILLED and does not begin, and a kill that comes after a step has begun sees RUNNING. That is
//! what lets a shutdown say that no step starts after it.
//!
//! # The end
//! [`conclude`] is the one way out, in the order of the contract: out of routing, context cancelled,
//! `close`, names and groups released, the reservation given back, monitors, links (`bonds.rs`).

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use windlass_core::queue::{Inbox, Letter, Mailbox, Pushed};
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use windlass_core::task::{TaskRef, contain};

use crate::bonds::{Bonds, announce};
use crate::error::{SendError, SendErrorKind};
use crate::exit::{Bond, ExitReason, Exited, MonitorRef};
use crate::host::Shared;
use crate::mail::{Mail, Posted, Reader, Reserved};
use crate::message::Message;
use windlass_value::Payload;
use windlass_value::Pid;

/// What the runner of a process is told, apart from messages.
pub(crate) enum Signal {
    Cancel(Arc<str>),
    Exit(Exited),
    /// A yield is complete.
    Complete {
        tag: u64,
        epoch: u32,
        result: Result<Payload, crate::command::YieldError>,
    },
    /// A letter that is not filled in yet.
    Blank,
}

/// Why everything is told to stop when a host ends.
pub(crate) const SHUTDOWN: &str = "shutdown";

const KILLED: u32 = 1 << 0;
const RUNNING: u32 = 1 << 1;
pub(crate) const CANCELLED: u32 = 1 << 2;
const TRAPS: u32 = 1 << 3;
/// Somebody waits for mail with a waker of another task.
const FOREIGN: u32 = 1 << 4;
/// The process waits for something else than messages.
const BLOCKED: u32 = 1 << 5;
/// A supervisor ends it.
const SUPERVISED: u32 = 1 << 6;
pub(crate) const COMPLETE: u32 = 1 << 7;
/// Ends of others wait to be looked at.
const NOTICES: u32 = 1 << 8;
/// It is on its way out.
pub(crate) const LEAVING: u32 = 1 << 9;
/// Somebody asked for a step.
const STEP_REQUESTED: u32 = 1 << 10;

/// A process of any type, as others see it.
pub(crate) trait Resident: Any + Send + Sync {
    fn shell(&self) -> &Shell;
    /// Puts a message of no particular type into its mailbox.
    fn deliver(&self, message: Message) -> Result<(), SendError<Message>>;
    fn unread(&self) -> Option<usize>;
    fn dropped(&self) -> u64;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// The shared half of a process that takes messages of type `M`.
pub(crate) struct Core<M> {
    pub(crate) shell: Shell,
    pub(crate) mail: Mail<M>,
}

pub(crate) struct Shell {
    pub(crate) pid: Pid,
    pub(crate) host: Arc<Shared>,
    signals: Mailbox<Signal>,
    /// Set before the task can run.
    task: OnceLock<TaskRef>,
    pub(crate) flags: AtomicU32,
    /// What an async process waits for, as its last poll left it.
    waits_for_mail: AtomicBool,
    pub(crate) bonds: Mutex<Bonds>,
}

impl<M: Send + 'static> Core<M> {
    pub(crate) fn new(pid: Pid, host: Arc<Shared>, mail: Mail<M>) -> Core<M> {
        Core {
            shell: Shell {
                pid,
                host,
                signals: Mailbox::new(),
                task: OnceLock::new(),
                flags: AtomicU32::new(0),
                waits_for_mail: AtomicBool::new(false),
                bonds: Mutex::new(Bonds::Bare),
            },
            mail,
        }
    }

    /// Puts a message in if the policy lets it in now, and wakes the process.
    #[inline(always)]
    pub(crate) fn post(&self, message: M) -> Result<(), SendError<M>> {
        self.after(self.mail.try_post(message))
    }

    /// As `post`, for a message that there is room for.
    pub(crate) fn post_reserved(
        &self,
        message: M,
        reserved: Reserved<'_>,
    ) -> Result<(), SendError<M>> {
        self.after(self.mail.post_reserved(message, reserved))
    }

    #[inline(always)]
    fn after(&self, posted: Result<Posted, (M, SendErrorKind)>) -> Result<(), SendError<M>> {
        match posted {
            Ok(Posted::First) => {
                self.shell.wake();
                Ok(())
            }
            Ok(Posted::Behind | Posted::Dropped) => Ok(()),
            Err((message, kind)) => Err(SendError { message, kind }),
        }
    }
}

impl<M: Send + 'static> Resident for Core<M> {
    fn shell(&self) -> &Shell {
        &self.shell
    }

    fn deliver(&self, message: Message) -> Result<(), SendError<Message>> {
        // Where it is the very type, it is moved; other processes understand what was made for them.
        let mut message = Some(message);
        if let Some(same) = (&mut message as &mut dyn Any).downcast_mut::<Option<M>>()
            && let Some(message) = same.take()
        {
            return self.post(message).map_err(|error| SendError {
                kind: error.kind,
                message: *(Box::new(error.message) as Box<dyn Any>)
                    .downcast()
                    .expect("it is the same type"),
            });
        }
        let message = message.expect("it was not taken");
        let (from, topic) = (message.from, message.topic);
        let back = |payload, kind| SendError {
            message: Message {
                from,
                topic: topic.clone(),
                payload,
            },
            kind,
        };
        let carried = match message.payload.take::<Carried<M>>() {
            Ok(Carried(carried)) => carried,
            Err(payload) => return Err(back(payload, SendErrorKind::NotUnderstood)),
        };
        let Some(value) = carried.lock().take() else {
            return Err(back(Payload::Nil, SendErrorKind::NotUnderstood));
        };
        self.post(value)
            .map_err(|error| back(carry(error.message), error.kind))
    }

    fn unread(&self) -> Option<usize> {
        self.mail.unread()
    }

    fn dropped(&self) -> u64 {
        self.mail.dropped()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// A typed message inside an untyped one. The lock makes it shareable; one takes it out.
struct Carried<M>(Mutex<Option<M>>);

/// A message of any type as the payload of an untyped one, for processes that take that type.
pub fn carry<M: Send + 'static>(message: M) -> Payload {
    Payload::opaque(Carried(Mutex::new(Some(message))))
}

/// How a turn of a process may begin.
pub(crate) enum Turn {
    /// It may step.
    Go,
    /// It ends instead.
    End(ExitReason),
}

impl Shell {
    // ---- waking ----

    /// Called once, before the task can run.
    pub(crate) fn set_task(&self, task: TaskRef) {
        let _ = self.task.set(task);
        // Pairs with the fence in `wake_unborn`: whoever found no task there has put its letter in before the
        // first turn looks.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn task(&self) -> Option<&TaskRef> {
        self.task.get()
    }

    /// Asks for a turn.
    #[inline]
    pub(crate) fn wake(&self) {
        match self.task.get() {
            Some(task) => task.wake(),
            None => self.wake_unborn(),
        }
    }

    #[cold]
    fn wake_unborn(&self) {
        // Pairs with the fence in `set_task`.
        fence(Ordering::SeqCst);
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }

    /// Asks for a step, whether something has come or not.
    pub(crate) fn request_step(&self) {
        // AcqRel: pairs with the one in `take_step_request`: whoever steps sees what came before this. A request that is
        // already there has woken the task, and its step is still to come.
        if self.flags.fetch_or(STEP_REQUESTED, Ordering::AcqRel) & STEP_REQUESTED == 0 {
            self.wake();
        }
    }

    /// Whether somebody asked for a step.
    #[inline]
    pub(crate) fn take_step_request(&self) -> bool {
        // Relaxed: one that is not seen here wakes. AcqRel: pairs with the one in `request_step`.
        self.flags.load(Ordering::Relaxed) & STEP_REQUESTED != 0
            && self.flags.fetch_and(!STEP_REQUESTED, Ordering::AcqRel) & STEP_REQUESTED != 0
    }

    /// Tells the runner something. What comes after the end goes nowhere.
    pub(crate) fn signal(&self, signal: Signal) {
        self.signal_by(Letter::new(signal));
    }

    pub(crate) fn signal_by(&self, letter: Letter<Signal>) {
        match self.signals.push(letter) {
            Ok(Pushed::First) => self.wake(),
            Ok(Pushed::Behind) => {}
            Err(letter) => {
                contain(|| drop(letter));
            }
        }
    }

    // ---- cancel and kill ----

    /// Ends the process at its next step boundary; true if it is inside a step.
    pub(crate) fn kill(&self) -> bool {
        // AcqRel: one word with RUNNING, see above.
        let before = self.flags.fetch_or(KILLED, Ordering::AcqRel);
        self.wake();
        before & RUNNING != 0
    }

    pub(crate) fn is_killed(&self) -> bool {
        // Relaxed: a kill that is not seen here wakes.
        self.flags.load(Ordering::Relaxed) & KILLED != 0
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        // Relaxed: set by the runner, on whose task this is asked; others get a hint.
        self.flags.load(Ordering::Relaxed) & CANCELLED != 0
    }

    pub(crate) fn cancel_reason(&self) -> Option<Arc<str>> {
        self.with_ties(|ties| ties.cancel_reason.clone()).flatten()
    }

    pub(crate) fn is_running(&self) -> bool {
        // Acquire: pairs with the AcqRel in `end_step`; for display.
        self.flags.load(Ordering::Acquire) & RUNNING != 0
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & BLOCKED != 0
    }

    pub(crate) fn is_complete(&self) -> bool {
        // Acquire: pairs with the AcqRel in `announce`: the bonds are over.
        self.flags.load(Ordering::Acquire) & COMPLETE != 0
    }

    pub(crate) fn is_supervised(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & SUPERVISED != 0
    }

    pub(crate) fn set_supervised(&self) {
        self.flags.fetch_or(SUPERVISED, Ordering::Relaxed);
    }

    pub(crate) fn trap_links(&self, traps: bool) {
        if traps {
            self.flags.fetch_or(TRAPS, Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!TRAPS, Ordering::Relaxed);
        }
    }

    pub(crate) fn traps_links(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & TRAPS != 0
    }

    // ---- turns of the runner ----

    /// The runner is about to step.
    #[inline]
    pub(crate) fn begin_step(&self) -> Turn {
        // AcqRel: one word with KILLED, see above.
        let before = self.flags.fetch_or(RUNNING, Ordering::AcqRel);
        if before & (KILLED | FOREIGN) != 0 {
            return self.begin_rarely(before);
        }
        Turn::Go
    }

    #[cold]
    fn begin_rarely(&self, before: u32) -> Turn {
        if before & KILLED != 0 {
            self.flags.fetch_and(!RUNNING, Ordering::AcqRel);
            return Turn::End(ExitReason::Killed);
        }
        self.wake_foreign();
        Turn::Go
    }

    /// The step has returned; the process now waits for something else than messages, or not.
    #[inline]
    pub(crate) fn end_step(&self, blocked: bool) {
        // Relaxed: only the runner changes these two.
        let was_blocked = self.flags.load(Ordering::Relaxed) & BLOCKED != 0;
        let changed = if was_blocked == blocked { 0 } else { BLOCKED };
        self.flags.fetch_xor(RUNNING | changed, Ordering::AcqRel);
    }

    /// Takes the next signal that the process itself has to see; handles the others. The error ends it.
    pub(crate) fn next_signal(
        &self,
        inbox: &mut Inbox<Signal>,
    ) -> Result<Option<Signal>, ExitReason> {
        loop {
            let next = inbox.pop().or_else(|| {
                inbox.fetch(&self.signals);
                inbox.pop()
            });
            match next {
                None => return Ok(None),
                Some(Signal::Blank) => {}
                Some(Signal::Cancel(_)) if self.is_cancelled() => {}
                Some(Signal::Cancel(reason)) => {
                    self.with_ties(|ties| ties.cancel_reason = Some(reason.clone()));
                    self.flags.fetch_or(CANCELLED, Ordering::Relaxed);
                    return Ok(Some(Signal::Cancel(reason)));
                }
                Some(Signal::Exit(exited)) => {
                    let stays = match exited.by {
                        Bond::Monitor(MonitorRef(id)) => self
                            .with_ties(|ties| ties.watching.remove(&id).is_some())
                            .unwrap_or(false),
                        Bond::Link if !self.end_link(exited.pid) => false,
                        Bond::Link if self.traps_links() => true,
                        Bond::Link if exited.reason.is_normal() => false,
                        Bond::Link => return Err(exited.reason),
                    };
                    if stays {
                        return Ok(Some(Signal::Exit(exited)));
                    }
                }
                Some(complete) => return Ok(Some(complete)),
            }
        }
    }

    // ---- what an async process looks at ----

    /// Relaxed: for display; only the runner's turn changes it.
    #[inline]
    pub(crate) fn set_waits_for_mail(&self, waits: bool) {
        self.waits_for_mail.store(waits, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn waits_for_mail(&self) -> bool {
        self.waits_for_mail.load(Ordering::Relaxed)
    }

    /// Keeps an exit until the process asks for it.
    pub(crate) fn keep_notice(&self, exited: Exited) {
        self.with_ties(|ties| {
            ties.notices.push_back(exited);
            // Relaxed, under the lock: for the runner's own task.
            self.flags.fetch_or(NOTICES, Ordering::Relaxed);
        });
    }

    #[inline]
    pub(crate) fn has_notices(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & NOTICES != 0
    }

    pub(crate) fn take_notice(&self) -> Option<Exited> {
        let mut bonds = self.bonds.lock();
        let notices = bonds.ties_if_any().map(|ties| &mut ties.notices);
        let (notice, is_last) = notices.map_or((None, true), |notices| {
            let notice = notices.pop_front();
            (notice, notices.is_empty())
        });
        if is_last {
            // Under the lock: one that is added meanwhile sets it again.
            self.flags.fetch_and(!NOTICES, Ordering::Relaxed);
        }
        notice
    }

    /// Whoever waits for mail wants to be woken by this, because the task's own turn does not reach it.
    pub(crate) fn set_foreign(&self, waker: &Waker) {
        // A waker's clone and drop may run anything: before the lock, and after it.
        let mut waker = Some(waker.clone());
        self.with_ties(|ties| std::mem::swap(&mut ties.foreign, &mut waker));
        drop(waker);
        self.flags.fetch_or(FOREIGN, Ordering::AcqRel);
    }

    fn wake_foreign(&self) {
        // Before the waker is taken: one that is set meanwhile sets the flag again.
        self.flags.fetch_and(!FOREIGN, Ordering::AcqRel);
        let waker = self
            .bonds
            .lock()
            .ties_if_any()
            .and_then(|ties| ties.foreign.take());
        if let Some(waker) = waker {
            contain(|| waker.wake());
        }
    }
}

/// The end of a process, in the order of the contract. `close` ends its code.
pub(crate) fn conclude<M: Send + 'static>(
    core: &Core<M>,
    mut reader: Option<Reader<M>>,
    result: Result<Payload, ExitReason>,
    close: impl FnOnce(),
) {
    let shell = &core.shell;
    let host = &shell.host;
    host.leave_routing(shell.pid);
    host.count_unread(core.mail.unread().unwrap_or(0));
    let unread = core.mail.close();
    let unheard = shell.signals.close();
    shell.leave();
    let closed = catch_unwind(AssertUnwindSafe(close));
    let (reason, value) = match (closed, result) {
        (Err(panic), _) => {
            let reason = ExitReason::of_panic(&*panic);
            contain(|| drop(panic));
            (reason, Payload::Nil)
        }
        (Ok(()), Ok(value)) => (ExitReason::Normal, value),
        (Ok(()), Err(reason)) => (reason, Payload::Nil),
    };
    // What nobody will read: those who asked get to know.
    contain(|| drop(reader.take()));
    contain(|| drop(unread));
    contain(|| drop(unheard));
    let (names, groups) = shell.names_and_groups();
    host.release_names(shell.pid, &names);
    host.leave_groups(shell.pid, &groups);
    let was_last = host.release();
    announce(shell, reason, value);
    if was_last {
        host.tell_shutdown();
    }
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("pid", &self.pid)
            .field("running", &self.is_running())
            .field("complete", &self.is_complete())
            .finish()
    }
}

//! The half of a process that others touch: its PID, its mail, its signals, its bonds.
//!
//! # Who owns what
//! The *runner* (the task's body) owns the code of the process, the reading ends of both queues and
//! the state of the process. All others have the [`Core`]: they push letters, set KILLED, and read
//! what the runner publishes. Wakes go through the task's own state word and nothing else
//! (`Shell::wake`).
//!
//! # The flags
//! RUNNING and KILLED are in one word, so that one of the two sees the other: a step that begins
//! after a kill sees KILLED and does not begin, and a kill that comes after a step has begun sees
//! RUNNING. That is what lets a shutdown say that no step starts after it.
//!
//! # The end
//! [`conclude()`] is the one way out, in the promised order: out of routing, context
//! cancelled, `close`, names and groups released, the reservation given back, monitors, links
//! (`bonds/announce.rs`).

mod carry;
mod conclude;
mod core;
mod notices;
mod resident;
mod signal;
mod turn;

use std::fmt;
use std::sync::{Arc, OnceLock};

use windlass_core::queue::{Letter, Mailbox, PushOutcome};
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use windlass_core::task::{TaskRef, contain};
use windlass_value::Pid;

use self::carry::CarriedMessage;
pub use self::carry::carry;
pub(crate) use self::conclude::conclude;
pub(crate) use self::core::{Core, refused};
pub(crate) use self::resident::Resident;
pub(crate) use self::signal::Signal;
pub(crate) use self::turn::Turn;
use crate::bonds::Bonds;
use crate::host::HostShared;

/// The reason of the cancel when a host ends.
pub(crate) const SHUTDOWN: &str = "shutdown";

const KILLED: u32 = 1 << 0;
const RUNNING: u32 = 1 << 1;
pub(crate) const CANCELLED: u32 = 1 << 2;
const TRAPS: u32 = 1 << 3;
/// Another task waits for mail, with its own waker.
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
/// A step was requested.
const STEP_REQUESTED: u32 = 1 << 10;

pub(crate) struct Shell {
    pub(crate) pid: Pid,
    pub(crate) host: Arc<HostShared>,
    signals: Mailbox<Signal>,
    /// Set before the task can run.
    task: OnceLock<TaskRef>,
    pub(crate) flags: AtomicU32,
    /// What an async process waits for, as its last poll left it.
    waits_for_mail: AtomicBool,
    pub(crate) bonds: Mutex<Bonds>,
}

impl Shell {
    // ---- waking ----

    /// Called once, before the task can run.
    pub(crate) fn set_task(&self, task: TaskRef) {
        let _ = self.task.set(task);
        // Pairs with the fence in `wake_unborn`: a sender that found no task has put its letter in
        // before the first turn looks.
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

    /// Requests a step, with or without an event.
    pub(crate) fn request_step(&self) {
        // AcqRel: pairs with the one in `take_step_request`: the step sees what was written before
        // this. A request that is already there has woken the task, and its step is still to come.
        if self.flags.fetch_or(STEP_REQUESTED, Ordering::AcqRel) & STEP_REQUESTED == 0 {
            self.wake();
        }
    }

    /// Takes the request for a step. Returns whether there was one.
    #[inline]
    pub(crate) fn take_step_request(&self) -> bool {
        // Relaxed: one that is not seen here wakes. AcqRel: pairs with the one in `request_step`.
        self.flags.load(Ordering::Relaxed) & STEP_REQUESTED != 0
            && self.flags.fetch_and(!STEP_REQUESTED, Ordering::AcqRel) & STEP_REQUESTED != 0
    }

    /// Sends a signal to the runner. A signal after the end is dropped.
    pub(crate) fn signal(&self, signal: Signal) {
        self.signal_by(Letter::new(signal));
    }

    pub(crate) fn signal_by(&self, letter: Letter<Signal>) {
        match self.signals.push(letter) {
            Ok(PushOutcome::First) => self.wake(),
            Ok(PushOutcome::Behind) => {}
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

    // ---- what an async process looks at ----
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

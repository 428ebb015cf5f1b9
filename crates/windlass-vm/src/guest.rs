//! What the author of a VM implements.

use std::fmt;
use std::sync::Arc;

use windlass_actor::{ActorError, Exited, Message};
use windlass_value::Payload;

use crate::budget::Budget;
use crate::exception::Exception;
use crate::reason::Reason;

/// Code of some language, as far as the runtime sees it: something that goes on in steps.
///
/// A guest is a process: it has a PID, a mailbox, links and monitors, and can be supervised. It is
/// never stepped by two threads at once, but by different ones after each other.
///
/// ```
/// use windlass_vm::{Budget, Guest, Placement, Resume, Step, Vm};
///
/// /// Counts down; a loop with a look at the budget in every turn.
/// struct Countdown(u64);
///
/// impl Guest for Countdown {
///     fn step(&mut self, budget: &Budget<'_>, _: Resume) -> Step {
///         while self.0 > 0 {
///             self.0 -= 1;
///             if budget.spend(1) {
///                 return Step::Yield;
///             }
///         }
///         Step::Done("lift-off".into())
///     }
/// }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// for placement in [Placement::Reactor, Placement::Pool] {
///     let vm = Vm::builder().placement(placement).build()?;
///     let task = vm.spawn(Countdown(1_000_000))?;
///     assert_eq!(task.join().await.value, "lift-off".into());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Guest: Send + 'static {
    /// Goes on until it is done, has to wait, or its budget is over. It makes some progress in
    /// every step, and must not block.
    fn step(&mut self, budget: &Budget<'_>, resume: Resume) -> Step;

    /// What people call it: the name of its script, say. Asked for once, when it is started.
    fn name(&self) -> Option<Arc<str>> {
        None
    }

    /// Releases what it holds. Runs exactly once, whatever the end.
    fn close(&mut self) {}
}

impl Guest for Box<dyn Guest> {
    fn step(&mut self, budget: &Budget<'_>, resume: Resume) -> Step {
        (**self).step(budget, resume)
    }

    fn name(&self) -> Option<Arc<str>> {
        (**self).name()
    }

    fn close(&mut self) {
        (**self).close();
    }
}

/// How a step ends.
#[derive(Debug)]
pub enum Step {
    /// It has ended, with this.
    Done(Payload),
    /// It has ended, because of this.
    Failed(ActorError),
    /// It goes on when all other ready guests have had a turn.
    Yield,
    /// It waits for this.
    Suspend(Reason),
}

/// Why a guest is stepped.
#[derive(Debug)]
pub enum Resume {
    /// It begins, or goes on after a yield.
    Go,
    /// What it waited for has ended, so or so.
    Ended(Ending),
    /// Some of the waits that it has begun ([`Budget::begin`]) have ended, in this order.
    Several(Vec<(u64, Ending)>),
}

/// How a wait ended.
pub type Ending = Result<Answer, Exception>;

/// What a wait gave.
#[derive(Clone, PartialEq)]
pub enum Answer {
    /// A value; nil where there is nothing to say.
    Value(Payload),
    /// A message from the mailbox.
    Message(Message),
    /// The end of a process that this one monitors, or is linked to and traps links.
    Exited(Exited),
}

impl Answer {
    /// The value; a message's payload.
    pub fn into_value(self) -> Payload {
        match self {
            Answer::Value(value) => value,
            Answer::Message(message) => message.payload,
            Answer::Exited(exited) => Payload::Pid(exited.pid),
        }
    }
}

impl<T: Into<Payload>> From<T> for Answer {
    fn from(value: T) -> Answer {
        Answer::Value(value.into())
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Value(value) => fmt::Debug::fmt(value, f),
            Answer::Message(message) => fmt::Debug::fmt(message, f),
            Answer::Exited(exited) => fmt::Debug::fmt(exited, f),
        }
    }
}

/// What a function of the host gives to guest code.
#[derive(Debug)]
pub enum NativeResult {
    /// The function returns this value.
    Value(Payload),
    /// The function fails with this exception.
    Error(Exception),
    /// What this wait gives.
    Suspend(Reason),
}

//! The events of the reactor.

use std::sync::Arc;

use windlass_actor::ExitReason;
use windlass_sync::park::Generation;
use windlass_value::Payload;

use crate::effects::Op;
use crate::guest::{Ending, Resume};
use crate::guest_shared::GuestShared;
use crate::object::Waiter;
use crate::reason::Reason;
use crate::record::{AnswerLog, shown_value};

pub(crate) enum Event {
    /// A guest did something, inside a step.
    Op { guest: Arc<GuestShared>, op: Op },
    /// A step has ended.
    Result(StepResult),
    /// Blocking work was done.
    Io { waiter: Waiter, ending: Ending },
    /// Something came to the process of a guest.
    Input {
        guest: Arc<GuestShared>,
        generation: Generation,
        ending: Ending,
    },
    Cancel {
        guest: Arc<GuestShared>,
        reason: Arc<str>,
    },
    /// The process of a guest has ended.
    Kill { guest: Arc<GuestShared> },
    /// A guest was started from outside.
    Inject { guest: Arc<GuestShared> },
    /// Something that it looks at itself has changed.
    WakeLoop,
    /// The last handle of the VM was dropped.
    Stop,
    /// The recording shall end.
    EndRecording,
}

/// A step that has ended. The guest is back in its shared half, unless it is over.
pub(crate) struct StepResult {
    pub(crate) guest: Arc<GuestShared>,
    pub(crate) slot: usize,
    pub(crate) outcome: StepOutcome,
    pub(crate) spent: u64,
    pub(crate) answers: AnswerLog,
}

pub(crate) enum StepOutcome {
    Yield,
    Suspend(Reason),
    Over(Result<Payload, ExitReason>),
    /// The guest was not stepped.
    Rejected(Resume),
}

impl StepOutcome {
    /// Returns how the step ended, as recordings say it.
    pub(crate) fn description(&self) -> String {
        match self {
            StepOutcome::Yield => "yield".to_owned(),
            StepOutcome::Suspend(reason) => format!("suspend {}", reason.description()),
            StepOutcome::Over(Ok(Payload::Nil)) => "done".to_owned(),
            StepOutcome::Over(Ok(value)) => format!("done {}", shown_value(value)),
            StepOutcome::Over(Err(reason)) => format!("failed {reason}"),
            StepOutcome::Rejected(_) => "rejected".to_owned(),
        }
    }
}

//! Events that the loop has fetched and not handled.

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_sync::park::Generation;

use crate::effects::Op;
use crate::guest::Ending;
use crate::guest_shared::GuestShared;
use crate::object::Waiter;
use crate::reactor::event::StepResult;

/// Events that were fetched and not handled, by the step that handles them.
#[derive(Default)]
pub(super) struct EventQueues {
    pub(super) results: VecDeque<WorkerEvent>,
    pub(super) completions: VecDeque<(Waiter, Ending)>,
    pub(super) timers: VecDeque<(u64, u64)>,
    pub(super) outside: VecDeque<OutsideEvent>,
}

/// An event from a worker.
pub(super) enum WorkerEvent {
    Op { guest: Arc<GuestShared>, op: Op },
    Result(StepResult),
}

/// An event from outside the VM.
pub(super) enum OutsideEvent {
    Inject(Arc<GuestShared>),
    Input(Arc<GuestShared>, Generation, Ending),
    Cancel(Arc<GuestShared>, Arc<str>),
    Kill(Arc<GuestShared>),
    Pause(bool),
}

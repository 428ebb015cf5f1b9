//! A step of a guest on a VM worker.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use windlass_actor::ExitReason;
use windlass_core::sync::CoarseClock;
use windlass_core::sync::atomic::Ordering;

use super::event::{Event, StepOutcome, StepResult};
use crate::guest::{Guest, Resume, Step};
use crate::guest_process::{close, step_guest};
use crate::guest_shared::GuestShared;
use crate::record::AnswerLog;
use crate::slot::Slot;
use crate::vm::GuestScheduler;

/// One step, once. If the workers do not take it, it says so: its slot comes back in any case.
pub(super) struct Job {
    pub(super) shared: Arc<GuestShared>,
    pub(super) slot: Arc<Slot>,
    pub(super) place: usize,
    /// None once it has run.
    pub(super) input: Option<StepInput>,
}

pub(super) struct StepInput {
    pub(super) guest: Box<dyn Guest>,
    pub(super) resume: Resume,
    pub(super) answers: AnswerLog,
}

impl Job {
    fn run(&mut self) {
        let Some(StepInput {
            mut guest,
            resume,
            answers,
        }) = self.input.take()
        else {
            return;
        };
        let vm = &self.shared.vm;
        // What is written down does not depend on the moment.
        if !vm.enter_job() && !vm.counting {
            vm.leave();
            return self.report(Some(guest), StepOutcome::Rejected(resume), 0, answers);
        }
        let began = CoarseClock::look();
        self.slot.begin(began.at());
        let (step, answers, spent) =
            step_guest(&mut *guest, vm, &self.shared, &self.slot, resume, answers);
        self.slot.end();
        let time = began.now() - began.at();
        self.shared.cpu.fetch_add(time, Ordering::Relaxed);
        let limit = match vm.counting {
            true => None,
            false => vm.over_limit(&self.shared),
        };
        let outcome = match (step, limit) {
            (Ok(Step::Done(value)), _) => StepOutcome::Over(Ok(value)),
            (Ok(Step::Failed(error)), _) => StepOutcome::Over(Err(ExitReason::from(error))),
            (Err(reason), _) | (Ok(_), Some(reason)) => StepOutcome::Over(Err(reason)),
            (Ok(Step::Yield), None) => StepOutcome::Yield,
            (Ok(Step::Suspend(reason)), None) => StepOutcome::Suspend(reason),
        };
        let guest = match outcome {
            StepOutcome::Over(_) => {
                close(guest);
                None
            }
            _ => Some(guest),
        };
        vm.leave();
        self.report(guest, outcome, spent, answers);
    }

    fn report(
        &self,
        guest: Option<Box<dyn Guest>>,
        outcome: StepOutcome,
        spent: u64,
        answers: AnswerLog,
    ) {
        *self.shared.stored.lock() = guest;
        let GuestScheduler::Reactor(reactor) = &self.shared.vm.scheduler else {
            return;
        };
        reactor.post(Event::Result(StepResult {
            guest: self.shared.clone(),
            slot: self.place,
            outcome,
            spent,
            answers,
        }));
    }
}

impl Future for Job {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.run();
        Poll::Ready(())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(input) = self.input.take() {
            self.report(
                Some(input.guest),
                StepOutcome::Rejected(input.resume),
                0,
                input.answers,
            );
        }
    }
}

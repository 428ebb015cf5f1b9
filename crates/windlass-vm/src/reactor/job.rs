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
use crate::record::Script;
use crate::shell::{close, step_guest};
use crate::slot::Slot;
use crate::task::GuestShared;
use crate::vm::GuestScheduler;

/// One step, once. If the workers do not take it, it says so: its slot comes back in any case.
pub(super) struct Job {
    pub(super) shared: Arc<GuestShared>,
    pub(super) slot: Arc<Slot>,
    pub(super) place: usize,
    /// None once it has run.
    pub(super) todo: Option<Todo>,
}

pub(super) struct Todo {
    pub(super) guest: Box<dyn Guest>,
    pub(super) resume: Resume,
    pub(super) script: Script,
}

impl Job {
    fn run(&mut self) {
        let Some(Todo {
            mut guest,
            resume,
            script,
        }) = self.todo.take()
        else {
            return;
        };
        let vm = &self.shared.vm;
        // What is written down does not depend on the moment.
        if !vm.enter_job() && !vm.counting {
            vm.leave();
            return self.report(Some(guest), StepOutcome::Rejected(resume), 0, script);
        }
        let began = CoarseClock::look();
        self.slot.begin(began.at());
        let (step, script, spent) =
            step_guest(&mut *guest, vm, &self.shared, &self.slot, resume, script);
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
        self.report(guest, outcome, spent, script);
    }

    fn report(
        &self,
        guest: Option<Box<dyn Guest>>,
        outcome: StepOutcome,
        spent: u64,
        script: Script,
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
            script,
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
        if let Some(todo) = self.todo.take() {
            self.report(
                Some(todo.guest),
                StepOutcome::Rejected(todo.resume),
                0,
                todo.script,
            );
        }
    }
}

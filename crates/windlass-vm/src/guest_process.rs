//! The process of a guest: what it has of PID, mailbox, links and signals.
//!
//! On the pool it steps the guest itself. On the reactor it only carries what comes to the process
//! there, and what the guest asks of the process back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use windlass_actor::{
    ActorError, Event, Events, ExitReason, Message, Output, Process, ProcessContext, Status,
};
use windlass_core::context::note_long_turn;
use windlass_core::task::contain;
use windlass_sync::park::{EndedWaits, Generation};
use windlass_value::{Payload, Payloads};

use crate::budget::Budget;
use crate::effects::{Op, message_of};
use crate::exception::Exception;
use crate::guest::{Answer, Ending, Guest, Resume, Step};
use crate::guest_shared::GuestShared;
use crate::record::AnswerLog;
use crate::slot::Slot;
use crate::vm::{GuestScheduler, VmShared};

/// The tag of what a guest is suspended on, among those that it has begun itself.
pub(crate) const SUSPENDED: u64 = u64::MAX;

/// How often a guest may wait for something that is there already before others have a turn.
const ROUNDS: usize = 64;

/// The process of a guest.
pub(crate) struct GuestProcess {
    shared: Arc<GuestShared>,
    /// The guest, on the pool.
    guest: Option<Box<dyn Guest>>,
    parked: bool,
    /// This process announces the guest to the reactor.
    injects: bool,
}

impl GuestProcess {
    pub(crate) fn new(
        shared: Arc<GuestShared>,
        guest: Option<Box<dyn Guest>>,
        injects: bool,
    ) -> GuestProcess {
        GuestProcess {
            shared,
            guest,
            parked: false,
            injects,
        }
    }

    /// Handles the signals of the process.
    fn hear(&mut self, events: &mut Events<'_>) {
        while let Some(event) = events.next_signal() {
            match event {
                Event::Cancel(reason) => match &self.shared.vm.scheduler {
                    GuestScheduler::Pool(_) => self.shared.cancel(reason),
                    GuestScheduler::Reactor(reactor) => reactor.post_cancel(&self.shared, reason),
                },
                Event::Exit(exited) => self.shared.mail.lock().notices.push_back(exited),
                Event::YieldComplete { tag, result } => {
                    let ending = result.map(Answer::Value).map_err(Exception::Command);
                    self.input(Generation(tag), ending);
                }
                _ => {}
            }
        }
    }

    /// Serves the waits for messages and exits, the oldest first. Passes commands of the guest on.
    fn serve(&mut self, events: &mut Events<'_>, out: &mut Output) {
        let Some(mut mail) = self.shared.wanted_mail() else {
            return;
        };
        let mut place = 0;
        while let Some(wait) = mail.receives.get(place) {
            let fits = |message: &Message| wait.pattern.matches(message.topic.as_str());
            let message = match mail.returned.iter().position(fits) {
                Some(place) => mail.returned.remove(place),
                None => events.next_message(&wait.pattern),
            };
            let now = mail.receives[place].now;
            let ending = match message {
                Some(message) => Ok(Answer::Message(message)),
                None if now => Err(Exception::TimedOut),
                None => {
                    place += 1;
                    continue;
                }
            };
            // Served: on the reactor its end is still on the way.
            let generation = mail.receives.remove(place).generation;
            drop(mail);
            self.input(generation, ending);
            mail = self.shared.mail.lock();
        }
        drop(mail);
        loop {
            let mut mail = self.shared.mail.lock();
            if mail.exits.is_empty() {
                break;
            }
            let Some(exited) = mail.notices.pop_front() else {
                break;
            };
            let generation = mail.exits.remove(0);
            drop(mail);
            self.input(generation, Ok(Answer::Exited(exited)));
        }
        let customs = std::mem::take(&mut self.shared.mail.lock().customs);
        for (Generation(tag), custom) in customs {
            (custom.0)(tag, out);
        }
    }

    fn input(&self, generation: Generation, ending: Ending) {
        match &self.shared.vm.scheduler {
            GuestScheduler::Pool(_) => self.shared.input(generation, ending),
            GuestScheduler::Reactor(reactor) => {
                reactor.post_input(&self.shared, generation, ending)
            }
        }
    }

    /// Steps the guest, on the worker that this process has its turn on.
    fn run(&mut self, events: &mut Events<'_>, out: &mut Output) -> Result<Status, ActorError> {
        let shared = self.shared.clone();
        let vm = &shared.vm;
        if (self.parked && !shared.has_arrived()) || !vm.enter(&shared) {
            return Ok(Status::Blocked);
        }
        self.parked = false;
        let outcome = vm.on_slot(&shared, |slot| {
            for _ in 0..ROUNDS {
                let resume = Resume::of(shared.arrived());
                let guest = self.guest.as_mut().expect("it has not ended");
                let (step, _, _) =
                    step_guest(&mut **guest, vm, &shared, slot, resume, AnswerLog::Live);
                match step {
                    Ok(Step::Done(value)) => return TurnOutcome::Over(Ok(value)),
                    Ok(Step::Failed(error)) => return TurnOutcome::Over(Err(error.into())),
                    Err(reason) => return TurnOutcome::Over(Err(reason)),
                    Ok(Step::Yield) => break,
                    Ok(Step::Suspend(reason)) => {
                        vm.perform(&shared, begin(reason));
                        self.serve(events, out);
                        if shared.park() {
                            return TurnOutcome::Parked;
                        }
                        if slot.is_asked() {
                            break;
                        }
                    }
                }
            }
            TurnOutcome::Again {
                long: slot.is_asked(),
            }
        });
        vm.leave();
        let killed = shared.context().is_some_and(ProcessContext::is_killed);
        let outcome = match vm.over_limit(&shared) {
            // What it says about that is not why it ended.
            _ if killed => TurnOutcome::Over(Err(ExitReason::Killed)),
            Some(reason) if !matches!(outcome, TurnOutcome::Over(_)) => {
                TurnOutcome::Over(Err(reason))
            }
            _ => outcome,
        };
        match outcome {
            TurnOutcome::Parked => {
                self.parked = true;
                Ok(Status::Blocked)
            }
            TurnOutcome::Again { long } => {
                self.serve(events, out);
                if long {
                    note_long_turn();
                }
                Ok(Status::Continue)
            }
            TurnOutcome::Over(result) => {
                self.close_guest();
                shared.finish(result.clone());
                result.map(Status::Done).map_err(ActorError::from)
            }
        }
    }

    fn close_guest(&mut self) {
        if let Some(guest) = self.guest.take() {
            close(guest);
        }
    }
}

/// How a turn of a guest on the pool ended.
enum TurnOutcome {
    Parked,
    Again {
        /// Its slice was over.
        long: bool,
    },
    Over(Result<Payload, ExitReason>),
}

/// A suspension as something that a guest does.
pub(crate) fn begin(reason: crate::reason::Reason) -> Op {
    Op::Begin {
        tag: SUSPENDED,
        reason,
    }
}

impl Resume {
    /// The endings that have arrived, as a guest is resumed with them.
    pub(crate) fn of(arrived: EndedWaits<Ending>) -> Resume {
        match arrived {
            EndedWaits::Nothing => Resume::Go,
            EndedWaits::One(SUSPENDED, ending) => Resume::Ended(ending),
            EndedWaits::One(tag, ending) => Resume::Several(vec![(tag, ending)]),
            EndedWaits::Several(several) => Resume::Several(several),
        }
    }

    /// The same, after the endings of an earlier resume that did not happen.
    pub(crate) fn and(self, arrived: EndedWaits<Ending>) -> Resume {
        let mut several = match (self, &arrived) {
            (resume, EndedWaits::Nothing) => return resume,
            (Resume::Go, _) => return Resume::of(arrived),
            (Resume::Ended(ending), _) => vec![(SUSPENDED, ending)],
            (Resume::Several(several), _) => several,
        };
        match arrived {
            EndedWaits::Nothing => {}
            EndedWaits::One(tag, ending) => several.push((tag, ending)),
            EndedWaits::Several(more) => several.extend(more),
        }
        Resume::Several(several)
    }
}

/// Steps a guest once; a panic is an end like any other.
pub(crate) fn step_guest(
    guest: &mut dyn Guest,
    vm: &Arc<VmShared>,
    shared: &Arc<GuestShared>,
    slot: &Slot,
    resume: Resume,
    answers: AnswerLog,
) -> (Result<Step, ExitReason>, AnswerLog, u64) {
    let budget = Budget::new(vm, shared, slot, answers);
    let stepped = catch_unwind(AssertUnwindSafe(|| guest.step(&budget, resume)));
    let (answers, spent) = budget.into_answers();
    vm.counts.stepped(slot, matches!(stepped, Ok(Step::Yield)));
    let stepped = stepped.map_err(|panic| {
        let reason = ExitReason::Panic(message_of(&*panic));
        contain(|| drop(panic));
        reason
    });
    (stepped, answers, spent)
}

/// Ends a guest; what its own code does then counts as little.
pub(crate) fn close(mut guest: Box<dyn Guest>) {
    contain(|| guest.close());
    contain(|| drop(guest));
}

impl Process for GuestProcess {
    fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), ActorError> {
        self.shared.set_context(ctx.clone());
        if let GuestScheduler::Reactor(reactor) = &self.shared.vm.scheduler
            && self.injects
        {
            reactor.post_inject(&self.shared);
        }
        Ok(())
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut Output) -> Result<Status, ActorError> {
        self.hear(events);
        self.serve(events, out);
        match &self.shared.vm.scheduler {
            GuestScheduler::Pool(_) => self.run(events, out),
            GuestScheduler::Reactor(_) => match self.shared.result() {
                Some(result) => result.map(Status::Done).map_err(ActorError::from),
                None => Ok(Status::Blocked),
            },
        }
    }

    fn close(&mut self) {
        self.close_guest();
        match &self.shared.vm.scheduler {
            GuestScheduler::Pool(_) => self.shared.finish(Err(ExitReason::Killed)),
            GuestScheduler::Reactor(reactor) => {
                if self.shared.result().is_none() {
                    reactor.post_kill(&self.shared);
                }
            }
        }
    }
}

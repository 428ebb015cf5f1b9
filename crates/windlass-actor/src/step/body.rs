//! The runner of a step machine.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use windlass_core::queue::Inbox;
use windlass_core::task::{Body, contain, spend};
use windlass_value::Payload;

use super::{Event, Events, Output, Process, ProcessContext, Status, Upgrade};
use crate::command::Completer;
use crate::exit::ExitReason;
use crate::mail::Reader;
use crate::message::Message;
use crate::shell::{Core, Signal, Turn, conclude};

/// The runner of a step machine.
pub(crate) struct StepBody {
    core: Arc<Core<Message>>,
    context: ProcessContext,
    signals: Inbox<Signal>,
    /// Signals and completions that are for the process.
    first: VecDeque<Event>,
    reader: Reader<Message>,
    out: Output,
    /// What it asked for and has not seen the answer to.
    outstanding: usize,
    /// Changes with the code: completions for other code go nowhere.
    epoch: u32,
    /// The next step needs no event: the first step, and one after `Continue`.
    due: bool,
    /// None once it has ended.
    process: Option<Box<dyn Process>>,
}

/// What follows a step.
enum NextStep {
    /// Another one, if the turn is long enough.
    Again,
    /// Another one, in a later turn.
    Yield,
    /// Nothing, until something comes.
    Wait {
        /// It waits for something else than messages.
        blocked: bool,
    },
    End(Result<Payload, ExitReason>),
}

impl StepBody {
    pub(crate) fn new(
        core: Arc<Core<Message>>,
        context: ProcessContext,
        process: Box<dyn Process>,
    ) -> StepBody {
        StepBody {
            core,
            context,
            signals: Inbox::new(),
            first: VecDeque::new(),
            reader: Reader::new(),
            out: Output::default(),
            outstanding: 0,
            epoch: 0,
            due: true,
            process: Some(process),
        }
    }

    fn end(&mut self, result: Result<Payload, ExitReason>) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let reader = std::mem::replace(&mut self.reader, Reader::new());
        conclude(&*self.core, Some(reader), result, || {
            /// The value goes also when `close` panics; its own panic then counts as little.
            struct Last(Option<Box<dyn Process>>);
            impl Drop for Last {
                fn drop(&mut self) {
                    contain(|| drop(self.0.take()));
                }
            }
            process.close();
            let mut last = Last(Some(process));
            drop(last.0.take());
        });
    }

    /// Queues the signals that have arrived. Returns true if there were some. The error ends the
    /// process.
    fn take_signals(&mut self) -> Result<bool, ExitReason> {
        let mut notified = self.core.shell.take_step_request();
        while let Some(signal) = self.core.shell.next_signal(&mut self.signals)? {
            let event = match signal {
                Signal::Complete { tag, epoch, result } if epoch == self.epoch => {
                    Event::YieldComplete { tag, result }
                }
                Signal::Cancel(reason) => Event::Cancel(reason),
                Signal::Exit(exited) => Event::Exit(exited),
                // For code that is no longer there.
                Signal::Complete { .. } | Signal::Blank => continue,
            };
            self.first.push_back(event);
            notified = true;
        }
        Ok(notified)
    }

    fn step(&mut self) -> NextStep {
        let mut events = Events {
            core: &self.core,
            first: &mut self.first,
            reader: &mut self.reader,
            outstanding: &mut self.outstanding,
            taken: false,
        };
        let process = self.process.as_mut().expect("it has not ended");
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            process.step(&mut events, &mut self.out)
        }));
        let taken = events.taken;
        let status = match stepped {
            Ok(Ok(status)) => status,
            Ok(Err(error)) => return NextStep::End(Err(error.into())),
            Err(panic) => return NextStep::End(Err(ExitReason::of_panic(panic))),
        };
        if let Status::Upgrade(upgrade) = status {
            self.out.requests.clear();
            return self.upgrade(upgrade);
        }
        if let Err(reason) = self.dispatch() {
            return NextStep::End(Err(reason));
        }
        match status {
            Status::Done(value) => NextStep::End(Ok(value)),
            Status::Continue => NextStep::Yield,
            // It made progress, and there is more: it is asked again. Otherwise it wants something
            // else than what is there, and waits for that.
            Status::Idle | Status::Blocked if taken && !self.is_empty() => NextStep::Again,
            Status::Idle => NextStep::Wait { blocked: false },
            Status::Blocked => NextStep::Wait { blocked: true },
            Status::Upgrade(_) => unreachable!("done above"),
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.reader.is_empty(&self.core.mail)
    }

    /// Hands what was asked for to its handlers. A panic of one ends the process.
    fn dispatch(&mut self) -> Result<(), ExitReason> {
        if self.out.requests.is_empty() {
            return Ok(());
        }
        let mut requests = std::mem::take(&mut self.out.requests);
        let mut result = Ok(());
        for (tag, command) in requests.drain(..) {
            self.outstanding += 1;
            let completer = Completer::new(self.core.clone(), self.epoch, tag);
            let commands = &self.core.shell.host.commands;
            let handled = catch_unwind(AssertUnwindSafe(|| commands.dispatch(command, completer)));
            if let Err(panic) = handled {
                result = Err(ExitReason::of_panic(panic));
                break;
            }
        }
        // Its room is used again.
        contain(|| requests.clear());
        self.out.requests = requests;
        result
    }

    /// Other code takes over. Completions for the old code go nowhere; everything else stays.
    fn upgrade(&mut self, upgrade: Upgrade) -> NextStep {
        let Upgrade {
            mut process,
            method,
            input,
        } = upgrade;
        self.epoch = self.epoch.wrapping_add(1);
        self.outstanding = 0;
        self.first
            .retain(|event| !matches!(event, Event::YieldComplete { .. }));
        self.core.shell.end_context();
        if let Some(mut old) = self.process.take() {
            let closed = catch_unwind(AssertUnwindSafe(|| {
                old.close();
                drop(old);
            }));
            if let Err(panic) = closed {
                self.process = Some(process);
                return NextStep::End(Err(ExitReason::of_panic(panic)));
            }
        }
        let known = process.methods().contains(&method.as_str());
        let context = &self.context;
        let begun = catch_unwind(AssertUnwindSafe(|| process.init(context, &method, input)));
        self.process = Some(process);
        match begun {
            _ if !known => {
                let text = format!("the new code has no entry point called {method:?}");
                NextStep::End(Err(ExitReason::Error(text.into())))
            }
            Ok(Ok(())) => NextStep::Again,
            Ok(Err(error)) => NextStep::End(Err(error.into())),
            Err(panic) => NextStep::End(Err(ExitReason::of_panic(panic))),
        }
    }
}

impl Body for StepBody {
    type Output = ();

    fn resume(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            let Poll::Ready(spent) = spend(cx) else {
                return Poll::Pending;
            };
            spent.made_progress();
            let turn = match this.take_signals() {
                // The last look before the process waits: a sender after it finds empty queues, and
                // wakes the process.
                Ok(notified)
                    if this.reader.has_new_mail(&this.core.mail) || notified || this.due =>
                {
                    this.core.shell.begin_step()
                }
                Ok(_) if !this.core.shell.is_killed() => return Poll::Pending,
                Ok(_) => Turn::End(ExitReason::Killed),
                Err(reason) => Turn::End(reason),
            };
            let after = match turn {
                Turn::Go => this.step(),
                Turn::End(reason) => NextStep::End(Err(reason)),
            };
            this.core.mail.give_room();
            this.due = matches!(after, NextStep::Again | NextStep::Yield);
            match after {
                NextStep::End(result) => {
                    this.end(result);
                    return Poll::Ready(());
                }
                NextStep::Wait { blocked: true } => this.core.shell.end_step(true),
                // Idle with something outstanding is Blocked by construction.
                _ => this.core.shell.end_step(this.outstanding > 0),
            }
            if let NextStep::Yield = after {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl Drop for StepBody {
    fn drop(&mut self) {
        // The task was ended from below: the runtime is gone, or going.
        self.end(Err(ExitReason::Killed));
    }
}

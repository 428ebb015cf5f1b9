//! Step machines: processes that are driven event by event, for guest languages and hand-written machines.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use windlass_core::queue::Inbox;
use windlass_core::task::{Body, contain, spend};
use windlass_sync::CancellationToken;

use crate::address::Address;
use crate::command::{AnyCommand, Completer, YieldError};
use crate::error::SendError;
use crate::exit::{ActorError, ExitReason, Exited, MonitorRef};
use crate::host::Host;
use crate::mail::{ReadBy, Reader};
use crate::message::{Message, Pattern};
use crate::shell::{Core, Resident, Signal, Turn, conclude};
use windlass_value::Pid;
use windlass_value::{Payload, Payloads};

/// A state machine that the runtime drives: it is stepped with events, and writes what it asks for.
///
/// ```
/// use std::time::Duration;
/// use windlass_actor::command::Sleep;
/// use windlass_actor::{
///     ActorError, Event, Events, Host, Output, Payloads, Process, ProcessContext, Status,
/// };
///
/// /// Sleeps, then is done.
/// struct Nap;
///
/// impl Process for Nap {
///     fn init(&mut self, _: &ProcessContext, _: &str, _: Payloads) -> Result<(), ActorError> {
///         Ok(())
///     }
///
///     fn step(
///         &mut self,
///         events: &mut Events<'_>,
///         out: &mut Output,
///     ) -> Result<Status, ActorError> {
///         match events.next() {
///             Some(Event::YieldComplete { tag: 1, .. }) => Ok(Status::Done("rested".into())),
///             Some(_) => Ok(Status::Idle),
///             None => {
///                 out.request(1, Sleep(Duration::from_millis(1)));
///                 Ok(Status::Blocked)
///             }
///         }
///     }
/// }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let nap = Host::current()?.step(Nap)?;
/// assert_eq!(nap.join().await.value, "rested".into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Process: Send + 'static {
    /// Its entry points. A spawn that names another one fails.
    fn methods(&self) -> &[&str] {
        &["main"]
    }

    /// Prepares it for one of its entry points. An error fails the spawn.
    fn init(
        &mut self,
        ctx: &ProcessContext,
        method: &str,
        input: Payloads,
    ) -> Result<(), ActorError>;

    /// Goes on. Takes events as long as it likes: what it does not take stays, in its order. Must not block.
    /// The first step comes by itself, without events.
    fn step(&mut self, events: &mut Events<'_>, out: &mut Output) -> Result<Status, ActorError>;

    /// Releases what it holds. Runs exactly once, whatever the end.
    fn close(&mut self) {}
}

/// What a step machine is told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// What it asked for under this tag is there, or is not.
    YieldComplete {
        /// The process's own number for it.
        tag: u64,
        /// What came of it.
        result: Result<Payload, YieldError>,
    },
    /// A message.
    Message(Message),
    /// It shall stop, for this reason.
    Cancel(Arc<str>),
    /// Another process has ended: one that it monitors, or is linked to and traps links.
    Exit(Exited),
}

/// How a step ends.
#[non_exhaustive]
pub enum Status {
    /// It wants another step, after everybody else has had a turn.
    Continue,
    /// It waits for messages; with something outstanding it counts as Blocked.
    Idle,
    /// It waits for what it asked for. Messages and signals step it all the same; those that it does not take
    /// wait.
    Blocked,
    /// It has ended.
    Done(Payload),
    /// It goes on with other code.
    Upgrade(Upgrade),
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Continue => f.write_str("Continue"),
            Status::Idle => f.write_str("Idle"),
            Status::Blocked => f.write_str("Blocked"),
            Status::Done(value) => f.debug_tuple("Done").field(value).finish(),
            Status::Upgrade(_) => f.write_str("Upgrade"),
        }
    }
}

/// Other code for a process: it keeps the PID, names, groups, links, monitors and all unread messages.
/// What the old code had asked for is forgotten.
pub struct Upgrade {
    process: Box<dyn Process>,
    method: String,
    input: Payloads,
}

impl Upgrade {
    /// Goes on with this, at its entry point `main`.
    pub fn to(process: impl Process) -> Upgrade {
        Upgrade {
            process: Box::new(process),
            method: "main".to_owned(),
            input: Payloads::new(),
        }
    }

    /// Another entry point.
    pub fn method(mut self, method: impl Into<String>) -> Upgrade {
        self.method = method.into();
        self
    }

    /// What the new code is given.
    pub fn input(mut self, input: Payloads) -> Upgrade {
        self.input = input;
        self
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrade")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// What a step machine knows of itself. It may keep a clone.
#[derive(Clone)]
pub struct ProcessContext {
    core: Arc<Core<Message>>,
}

impl ProcessContext {
    pub(crate) fn new(core: Arc<Core<Message>>) -> ProcessContext {
        ProcessContext { core }
    }

    /// This process.
    pub fn pid(&self) -> Pid {
        self.core.shell.pid
    }

    /// Its host.
    pub fn host(&self) -> Host {
        Host(self.core.shell.host.clone())
    }

    /// Its own address.
    pub fn address(&self) -> Address<Message> {
        Address::new(self.core.clone())
    }

    /// Sends a message; it says that it is from this process.
    pub fn send(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        let message = message.from(self.pid());
        self.core.shell.host.route(to, message)
    }

    /// From now on the end of a linked process is an event, and does not end this one.
    pub fn trap_links(&self, traps: bool) {
        self.core.shell.trap_links(traps);
    }

    /// Links this process to another.
    pub fn link(&self, other: Pid) {
        let own: Arc<dyn Resident> = self.core.clone();
        self.core.shell.host.link(&own, other);
    }

    /// Undoes a link.
    pub fn unlink(&self, other: Pid) {
        self.core.shell.host.unlink(&*self.core, other);
    }

    /// Lets this process know of the end of another, exactly once.
    pub fn monitor(&self, other: Pid) -> MonitorRef {
        let own: Arc<dyn Resident> = self.core.clone();
        self.core.shell.host.monitor(&own, other)
    }

    /// Undoes a monitor; nothing comes from it any more.
    pub fn demonitor(&self, monitor: MonitorRef) {
        self.core.shell.host.demonitor(&*self.core, monitor);
    }

    /// Asks for a step of this process, though no event may have come: for those that keep what wakes them in a
    /// place of their own. Several before the step are one.
    pub fn request_step(&self) {
        self.core.shell.request_step();
    }

    /// Whether it was ended from outside: its step is the last one, and should come to an end.
    pub fn is_killed(&self) -> bool {
        self.core.shell.is_killed()
    }

    /// A token that is cancelled when the process ends, or goes on with other code.
    pub fn token(&self) -> CancellationToken {
        self.core.shell.context()
    }
}

impl fmt::Debug for ProcessContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessContext({})", self.core.shell.pid)
    }
}

/// What is there for a step: a cursor. What is not taken stays.
pub struct Events<'a> {
    core: &'a Core<Message>,
    first: &'a mut VecDeque<Event>,
    reader: &'a mut Reader<Message>,
    outstanding: &'a mut usize,
    taken: bool,
}

impl Events<'_> {
    /// The next event: signals and completions first, then messages, each in the order of arrival.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that is not exhausted by None would surprise"
    )]
    pub fn next(&mut self) -> Option<Event> {
        let event = match self.first.pop_front() {
            Some(event) => event,
            None => Event::Message(self.reader.take(&self.core.mail, ReadBy::OwnTurn)?),
        };
        if let Event::YieldComplete { .. } = event {
            *self.outstanding = self.outstanding.saturating_sub(1);
        }
        self.taken = true;
        Some(event)
    }

    /// The next signal or completion; messages stay.
    pub fn next_signal(&mut self) -> Option<Event> {
        if self.first.is_empty() {
            return None;
        }
        self.next()
    }

    /// The next message with such a topic; the others stay, in their order.
    pub fn next_message(&mut self, pattern: &Pattern) -> Option<Message> {
        let wanted = |message: &Message| pattern.matches(message.topic.as_str());
        let message = self
            .reader
            .take_where(&self.core.mail, ReadBy::OwnTurn, wanted)?;
        self.taken = true;
        Some(message)
    }
}

impl fmt::Debug for Events<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("signals", &self.first.len())
            .finish_non_exhaustive()
    }
}

/// What a step asks for.
#[derive(Default)]
pub struct Output {
    requests: Vec<(u64, AnyCommand)>,
}

impl Output {
    /// Asks for something under a tag of the process's own choice; the answer is an event with that tag.
    /// Answers may come in any order.
    pub fn request<C: Send + 'static>(&mut self, tag: u64, command: C) {
        self.requests.push((tag, AnyCommand::new(command)));
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("requests", &self.requests.len())
            .finish()
    }
}

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
    /// It is to step whether something has come or not: the first time, and when it wants to.
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

    /// Files what has come; true if there was something. The error ends the process.
    fn hear(&mut self) -> Result<bool, ExitReason> {
        let mut heard = self.core.shell.take_step_request();
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
            heard = true;
        }
        Ok(heard)
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
            Err(panic) => return NextStep::End(Err(of_panic(panic))),
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
            // It made progress, and there is more: it is asked again. Otherwise it wants something else
            // than what is there, and waits for that.
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
                result = Err(of_panic(panic));
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
                return NextStep::End(Err(of_panic(panic)));
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
            Err(panic) => NextStep::End(Err(of_panic(panic))),
        }
    }
}

fn of_panic(panic: Box<dyn std::any::Any + Send>) -> ExitReason {
    let reason = ExitReason::of_panic(&*panic);
    contain(|| drop(panic));
    reason
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
            let turn = match this.hear() {
                // The last look before it waits: whoever comes after it finds empty queues, and wakes.
                Ok(heard) if this.reader.has_news(&this.core.mail) || heard || this.due => {
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

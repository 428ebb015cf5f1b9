//! Starting processes.

mod process_handle;
mod terms;

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use windlass_core::task::{Class, Options, contain};
use windlass_runtime::dispatch::Dispatcher;
use windlass_value::{Payloads, Pid};

pub use self::process_handle::ProcessHandle;
use self::terms::Terms;
use crate::actor::{Actor, ActorBody, Context, run_actor};
use crate::error::SpawnError;
use crate::error::{NoHost, SignalError};
use crate::exit::{ExitReason, Outcome};
use crate::host::Host;
use crate::mail::MailboxPolicy;
use crate::message::Message;
use crate::shell::conclude;
use crate::step::{Process, ProcessContext, StepBody};
use crate::weigh::{Weigh, Weigher};

/// How a process is to be started: name, mailbox, bonds. Made by [`Host::process`].
#[derive(Clone)]
pub struct Spawn {
    host: Host,
    terms: Terms,
}

impl Spawn {
    #[track_caller]
    pub(crate) fn new(host: Host) -> Spawn {
        Spawn {
            host,
            terms: Terms {
                options: Options::here(),
                dispatcher: None,
                name: None,
                mailbox: None,
                mailbox_bytes: None,
                weigher: None,
                link: None,
                monitor: None,
                supervised: false,
            },
        }
    }

    /// The host it will live on.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Shows this in dumps, traces and reports, unless the process has a name. Registers nothing:
    /// any number of processes may have the same label.
    pub fn label(mut self, label: &str) -> Spawn {
        let name = &mut self.terms.options.name;
        *name = name.take().or_else(|| Some(label.to_owned().into()));
        self
    }

    /// Registers this name for it; the spawn fails if another process has it.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Spawn {
        let name = name.into();
        self.terms.options.name = Some((*name).to_owned().into());
        self.terms.name = Some(name);
        self
    }

    /// How much its mailbox holds.
    pub fn mailbox(mut self, policy: MailboxPolicy) -> Spawn {
        self.terms.mailbox = Some(policy);
        self
    }

    /// How many bytes its mailbox holds, in messages of more than a kilobyte; 64 MiB, or what the
    /// host says. Of no meaning for an unbounded mailbox.
    pub fn mailbox_bytes(mut self, bytes: usize) -> Spawn {
        self.terms.mailbox_bytes = Some(bytes);
        self
    }

    /// Counts messages of this type as their [`Weigh`] says, and not as their `size_of`. Of no
    /// meaning for a process that takes messages of another type.
    pub fn weighed<M: Weigh + 'static>(mut self) -> Spawn {
        let weigher: Weigher<M> = M::weigh;
        self.terms.weigher = Some(Arc::new(weigher));
        self
    }

    /// Sets the priority of its task.
    pub fn class(mut self, class: Class) -> Spawn {
        self.terms.options.class = class;
        self
    }

    /// Where it runs, and with the class of that dispatcher if it is not the usual one; on the
    /// workers of the host's runtime if nothing is said. A pool that ends takes its processes
    /// along.
    ///
    /// ```
    /// use windlass_actor::{Context, Host};
    /// use windlass_runtime::{Runtime, dispatch::Dispatcher};
    ///
    /// let runtime = Runtime::new()?;
    /// let exit = runtime.block_on(async {
    ///     let single = Dispatcher::single()?;
    ///     let process = Host::current()?.process().on(&single).spawn(|_: Context<()>| async {
    ///         let thread = std::thread::current();
    ///         assert!(thread.name().is_some_and(|name| name.starts_with("windlass-single")));
    ///     })?;
    ///     Ok::<_, Box<dyn std::error::Error>>(process.join().await)
    /// })?;
    /// assert!(exit.reason.is_normal());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on(mut self, dispatcher: &Dispatcher) -> Spawn {
        if dispatcher.class() != Class::Normal {
            self.terms.options.class = dispatcher.class();
        }
        self.terms.dispatcher = Some(dispatcher.clone());
        self
    }

    /// Links it to this process from its first moment.
    pub fn linked_to(mut self, parent: Pid) -> Spawn {
        self.terms.link = Some(parent);
        self
    }

    /// Lets this process know of its end.
    pub fn monitored_by(mut self, parent: Pid) -> Spawn {
        self.terms.monitor = Some(parent);
        self
    }

    pub(crate) fn supervised(mut self) -> Spawn {
        self.terms.supervised = true;
        self
    }

    /// Starts an async process: `f` gets its context, and the process is what it gives.
    pub fn spawn<M, F, Fut>(self, f: F) -> Result<ProcessHandle<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Context<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Outcome,
    {
        let Spawn { host, terms } = self;
        let core = terms.settle::<M>(host)?;
        let context = Context::new(core.clone());
        let future = match catch_unwind(AssertUnwindSafe(|| f(context))) {
            Ok(future) => future,
            Err(panic) => {
                let reason = ExitReason::of_panic(panic);
                conclude(&*core, None, Err(reason.clone()), || {});
                return Err(SpawnError::Init(reason));
            }
        };
        let body = ActorBody::new(core.clone(), future);
        terms.start(core, body)
    }

    /// Starts an actor.
    pub fn actor<A: Actor>(self, actor: A) -> Result<ProcessHandle<A::Message>, SpawnError> {
        self.spawn(move |context| run_actor(actor, context))
    }

    /// Starts a step machine at its entry point `main`.
    pub fn step(self, process: impl Process) -> Result<ProcessHandle<Message>, SpawnError> {
        self.step_at(Box::new(process), "main", Payloads::new())
    }

    /// Starts a step machine at one of its entry points. `init` runs before this returns; its error
    /// fails the spawn, after `close`.
    pub fn step_at(
        self,
        mut process: Box<dyn Process>,
        method: &str,
        input: Payloads,
    ) -> Result<ProcessHandle<Message>, SpawnError> {
        if !process.methods().contains(&method) {
            contain(|| process.close());
            contain(|| drop(process));
            return Err(SpawnError::UnknownMethod {
                method: method.into(),
            });
        }
        let Spawn { host, terms } = self;
        let core = match terms.settle::<Message>(host) {
            Ok(core) => core,
            Err(error) => {
                contain(|| process.close());
                contain(|| drop(process));
                return Err(error);
            }
        };
        let context = ProcessContext::new(core.clone());
        let begun = catch_unwind(AssertUnwindSafe(|| process.init(&context, method, input)));
        let reason = match begun {
            Ok(Ok(())) => {
                let body = StepBody::new(core.clone(), context, process);
                return terms.start(core, body);
            }
            Ok(Err(error)) => ExitReason::from(error),
            Err(panic) => ExitReason::of_panic(panic),
        };
        conclude(&*core, None, Err(reason.clone()), || {
            process.close();
            drop(process);
        });
        Err(SpawnError::Init(reason))
    }
}

impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("name", &self.terms.name)
            .field("mailbox", &self.terms.mailbox)
            .field("linked_to", &self.terms.link)
            .field("monitored_by", &self.terms.monitor)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Starts an async process; see [`Spawn::spawn`].
    #[track_caller]
    pub fn spawn<M, F, Fut>(&self, f: F) -> Result<ProcessHandle<M>, SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Context<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Outcome,
    {
        self.process().spawn(f)
    }

    /// Starts an actor; see [`Spawn::actor`].
    #[track_caller]
    pub fn actor<A: Actor>(&self, actor: A) -> Result<ProcessHandle<A::Message>, SpawnError> {
        self.process().actor(actor)
    }

    /// Starts a step machine; see [`Spawn::step`].
    #[track_caller]
    pub fn step(&self, process: impl Process) -> Result<ProcessHandle<Message>, SpawnError> {
        self.process().step(process)
    }

    /// Sends a message to the process with this name, and starts it first if there is none. Two
    /// callers at the same time start one process.
    #[track_caller]
    pub fn spawn_or_signal<F>(
        &self,
        name: &str,
        message: Message,
        start: F,
    ) -> Result<Pid, SignalError>
    where
        F: FnOnce(Spawn) -> Result<Pid, SpawnError>,
    {
        let mut start = Some((self.process().name(name), start));
        loop {
            let found = match self.0.names.get(name) {
                Some(process) => process.shell().pid,
                None => {
                    let Some((spawn, start)) = start.take() else {
                        return Err(SignalError::Gone);
                    };
                    match start(spawn) {
                        Ok(pid) => pid,
                        Err(SpawnError::NameTaken { owner, .. }) => owner,
                        Err(error) => return Err(SignalError::Spawn(error)),
                    }
                }
            };
            match self.send(found, message.clone()) {
                Ok(()) => return Ok(found),
                // It has just ended: its name is free, or will be in a moment.
                Err(error)
                    if error.kind == crate::error::SendErrorKind::NoProcess && start.is_some() =>
                {
                    self.0.names.release(found, &[name.into()]);
                }
                Err(error) => return Err(SignalError::Undelivered(error.kind)),
            }
        }
    }
}

/// Starts an async process on the runtime that this thread is in.
///
/// # Panics
/// On a thread that is in no runtime: use a [`Host`] there.
///
/// ```
/// use windlass_actor::Context;
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let echo = windlass_actor::spawn(|mut ctx: Context<String>| async move {
///     while let Some(line) = ctx.recv().await {
///         println!("{line}");
///     }
/// })?;
/// echo.tell("hello".to_owned())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn spawn<M, F, Fut>(f: F) -> Result<ProcessHandle<M>, SpawnError>
where
    M: Send + 'static,
    F: FnOnce(Context<M>) -> Fut,
    Fut: Future + Send + 'static,
    Fut::Output: Outcome,
{
    let spawn = match Host::current() {
        Ok(host) => host.process(),
        Err(NoHost::Stopping) => return Err(SpawnError::Stopping),
        Err(NoHost::NoRuntime(error)) => panic!("{error}"),
    };
    spawn.spawn(f)
}

//! Commands: what step machines ask for, who carries it out, and how the answer comes back.
//!
//! Commands are open: any type can be one. A host maps each type to a handler when it is built;
//! those of this module are there already. A handler gets a [`Completer`], which may go anywhere
//! and answers once.
//!
//! ```
//! use windlass_actor::command::Completer;
//! use windlass_actor::Host;
//!
//! struct Double(i64);
//!
//! # let runtime = windlass_runtime::Runtime::new()?;
//! let host = Host::builder()
//!     .command(|Double(number): Double, completer: Completer| completer.complete(number * 2))
//!     .build(runtime.handle())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod built_in;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use windlass_core::task::contain;
use windlass_sync::CancellationToken;
use windlass_value::{Payload, Pid};

pub use self::built_in::{
    Blocking, Broadcast, Cancel, ChannelReceive, ChannelSend, Demonitor, Exec, Join, Leave, Link,
    Monitor, Register, Run, Select, Send, Sleep, SpawnProcess, StopTimer, Terminate, Ticker, Timer,
    Unlink, Whereis,
};
use crate::error::SpawnError;
use crate::exit::{ExitReason, message_of};
use crate::host::Host;
use crate::message::Message;
use crate::shell::{Core, Resident, Signal};

/// Why what was asked for is not there.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum YieldError {
    /// The host has no handler for commands of this type.
    UnknownCommand(&'static str),
    /// The handler dropped its completer without an answer.
    Abandoned,
    /// The future or the closure that was to answer panicked, with this message.
    Panicked(Arc<str>),
    /// The process that was to be started was not.
    Spawn(SpawnError),
    /// The process that was waited for did not end normally.
    Exit(ExitReason),
    /// Something else went wrong.
    Failed(Payload),
}

impl fmt::Display for YieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            YieldError::UnknownCommand(name) => write!(
                f,
                "the host has no handler for {name}: register one with HostBuilder::command"
            ),
            YieldError::Abandoned => f.write_str("the handler gave no answer"),
            YieldError::Panicked(message) => write!(f, "what was to answer panicked: {message}"),
            YieldError::Spawn(error) => fmt::Display::fmt(error, f),
            YieldError::Exit(reason) => write!(f, "the process ended: {reason}"),
            YieldError::Failed(Payload::Text(text)) => f.write_str(text),
            YieldError::Failed(value) => write!(f, "failed: {value:?}"),
        }
    }
}

impl Error for YieldError {}

impl YieldError {
    fn of_panic(panic: Box<dyn Any + std::marker::Send>) -> YieldError {
        let message = message_of(&*panic).into();
        contain(|| drop(panic));
        YieldError::Panicked(message)
    }
}

/// A command of any type.
pub(crate) struct AnyCommand {
    command: Box<dyn Any + std::marker::Send>,
    name: &'static str,
}

impl AnyCommand {
    pub(crate) fn new<C: std::marker::Send + 'static>(command: C) -> AnyCommand {
        AnyCommand {
            command: Box::new(command),
            name: std::any::type_name::<C>(),
        }
    }
}

/// Carries out commands of type `C`. Closures are handlers.
///
/// It runs on a worker, inside the step of the process: it must not block.
pub trait Handler<C>: std::marker::Send + Sync + 'static {
    /// Does it, or sees to it that it is done; the completer answers.
    fn handle(&self, command: C, completer: Completer);
}

impl<C, F> Handler<C> for F
where
    F: Fn(C, Completer) + std::marker::Send + Sync + 'static,
{
    fn handle(&self, command: C, completer: Completer) {
        self(command, completer);
    }
}

type Dispatch = Box<dyn Fn(Box<dyn Any + std::marker::Send>, Completer) + std::marker::Send + Sync>;

/// The handlers of a host.
#[derive(Default)]
pub(crate) struct Commands(HashMap<TypeId, Dispatch, BuildHasherDefault<TypeIdHasher>>);

/// The ids of types are well spread already.
#[derive(Default)]
struct TypeIdHasher(u64);

impl Hasher for TypeIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }
}

impl Commands {
    pub(crate) fn with_built_ins() -> Commands {
        let mut commands = Commands::default();
        built_in::add_to(&mut commands);
        commands
    }

    /// False: there is one already.
    pub(crate) fn add<C: Any + std::marker::Send>(&mut self, handler: impl Handler<C>) -> bool {
        let dispatch: Dispatch = Box::new(move |command, completer| {
            match command.downcast::<C>() {
                Ok(command) => handler.handle(*command, completer),
                // The map leads here by the type: this does not happen.
                Err(_) => drop(completer),
            }
        });
        self.0.insert(TypeId::of::<C>(), dispatch).is_none()
    }

    pub(crate) fn dispatch(&self, command: AnyCommand, completer: Completer) {
        match self.0.get(&(*command.command).type_id()) {
            Some(handler) => handler(command.command, completer),
            None => completer.fail(YieldError::UnknownCommand(command.name)),
        }
    }
}

/// Answers one command, once, from any thread. Dropped without an answer it says
/// [`YieldError::Abandoned`]. If the process has ended or goes on with other code, the answer goes
/// nowhere.
#[must_use = "dropping it completes the command with Abandoned"]
pub struct Completer {
    /// None once it has answered.
    core: Option<Arc<Core<Message>>>,
    epoch: u32,
    tag: u64,
}

impl Completer {
    pub(crate) fn new(core: Arc<Core<Message>>, epoch: u32, tag: u64) -> Completer {
        Completer {
            core: Some(core),
            epoch,
            tag,
        }
    }

    fn core(&self) -> &Arc<Core<Message>> {
        self.core.as_ref().expect("it answers by value")
    }

    /// The process that asked.
    pub fn pid(&self) -> Pid {
        self.core().shell.pid
    }

    /// Returns the host of the process that asked.
    pub fn host(&self) -> Host {
        Host(self.core().shell.host.clone())
    }

    /// Returns a token that is cancelled when the answer is no longer wanted.
    pub fn token(&self) -> CancellationToken {
        self.core().shell.context()
    }

    pub(crate) fn process(&self) -> Arc<dyn Resident> {
        self.core().clone()
    }

    /// Completes the command with this value.
    #[inline]
    pub fn complete(self, value: impl Into<Payload>) {
        self.answer(Ok(value.into()));
    }

    /// It did not.
    pub fn fail(self, error: YieldError) {
        self.answer(Err(error));
    }

    /// It did, or not.
    #[inline]
    pub fn answer(mut self, result: Result<Payload, YieldError>) {
        self.send(result);
    }

    #[inline]
    fn send(&mut self, result: Result<Payload, YieldError>) {
        if let Some(core) = self.core.take() {
            core.shell.signal(Signal::Complete {
                tag: self.tag,
                epoch: self.epoch,
                result,
            });
        }
    }

    /// Answers with the result of a future, which is dropped when the answer is no longer wanted.
    pub fn spawn<F>(self, future: F)
    where
        F: Future<Output = Result<Payload, YieldError>> + std::marker::Send + 'static,
    {
        let (token, host) = (self.token(), self.host());
        let task = host.0.runtime.spawn(async move {
            let mut future = pin!(future);
            let result = poll_fn(|cx| {
                let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
                polled.unwrap_or_else(|panic| Poll::Ready(Err(YieldError::of_panic(panic))))
            });
            let result = result.await;
            self.answer(result);
        });
        token.abort_on_cancel(task.abort_handle());
    }

    /// Answers with what the closure gives; it may block.
    pub fn spawn_blocking<F>(self, f: F)
    where
        F: FnOnce() -> Result<Payload, YieldError> + std::marker::Send + 'static,
    {
        let host = self.host();
        let job = move || {
            let result = catch_unwind(AssertUnwindSafe(f));
            self.answer(result.unwrap_or_else(|panic| Err(YieldError::of_panic(panic))));
        };
        // Without a thread the completer is dropped, and says so.
        drop(host.0.runtime.try_spawn_blocking(job));
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        contain(|| self.send(Err(YieldError::Abandoned)));
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer")
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

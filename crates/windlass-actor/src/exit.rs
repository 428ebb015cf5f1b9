//! How processes end.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use windlass_core::task::{contain, panic_message};
use windlass_value::{Payload, Pid};

/// Why a process has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ExitReason {
    /// It was done.
    Normal,
    /// It said that something went wrong.
    Error(Payload),
    /// It panicked; the message.
    Panic(Arc<str>),
    /// It was cancelled, and ended.
    Cancelled(Arc<str>),
    /// It was ended from outside.
    Killed,
    /// Its node cannot be reached: whether it has ended is not known.
    NoConnection,
    /// There is no such process, or not any more.
    NoProcess,
}

impl ExitReason {
    /// Whether linked processes live on.
    pub fn is_normal(&self) -> bool {
        *self == ExitReason::Normal
    }

    /// The end by a panic, whose payload is dropped here: a panic of its destructor goes nowhere.
    pub(crate) fn of_panic(panic: Box<dyn Any + Send>) -> ExitReason {
        let reason = ExitReason::Panic(message_of(&*panic).into());
        contain(|| drop(panic));
        reason
    }
}

/// The text of a panic.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> &str {
    panic_message(panic).unwrap_or("a panic without a message")
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitReason::Normal => f.write_str("normal"),
            ExitReason::Error(Payload::Text(text)) => write!(f, "error: {text}"),
            ExitReason::Error(value) => write!(f, "error: {value:?}"),
            ExitReason::Panic(message) => write!(f, "panic: {message}"),
            ExitReason::Cancelled(reason) => write!(f, "cancelled: {reason}"),
            ExitReason::Killed => f.write_str("killed"),
            ExitReason::NoConnection => f.write_str("no connection to its node"),
            ExitReason::NoProcess => f.write_str("no such process"),
        }
    }
}

/// The end of a process, for those who waited for it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Exit {
    /// Who has ended.
    pub pid: Pid,
    /// The reason of the end.
    pub reason: ExitReason,
    /// What it ended with, if it was done.
    pub value: Payload,
}

/// The notification of the end of another process.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Exited {
    /// Who has ended.
    pub pid: Pid,
    /// The reason of the end.
    pub reason: ExitReason,
    /// How this one knew of it.
    pub by: Bond,
}

impl Exited {
    /// The end of this process, for this reason.
    pub fn new(pid: Pid, reason: ExitReason, by: Bond) -> Exited {
        Exited { pid, reason, by }
    }
}

/// What lets one process learn of another's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// A link between the two.
    Link,
    /// A monitor, and which.
    Monitor(MonitorRef),
}

/// Identifies a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MonitorRef(pub(crate) u64);

impl MonitorRef {
    /// The monitor with this number.
    pub fn from_number(number: u64) -> MonitorRef {
        MonitorRef(number)
    }

    /// Its number, as the command `Monitor` answers it.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Why a process gives up: an error of any type becomes one with `?`.
///
/// One word large: every handler's result holds one.
#[derive(Debug, Clone, PartialEq)]
pub struct ActorError(Box<ExitReason>);

impl ActorError {
    /// Something went wrong.
    pub fn new(value: impl Into<Payload>) -> ActorError {
        ActorError(Box::new(ExitReason::Error(value.into())))
    }

    /// Ends a process that was cancelled, with the reason of the cancel.
    pub fn cancelled(reason: impl Into<Arc<str>>) -> ActorError {
        ActorError(Box::new(ExitReason::Cancelled(reason.into())))
    }

    /// As the reason of an exit.
    pub fn reason(&self) -> &ExitReason {
        &self.0
    }
}

impl<E: Error> From<E> for ActorError {
    fn from(error: E) -> ActorError {
        ActorError::new(error.to_string())
    }
}

/// The end that this is the reason of.
impl From<ExitReason> for ActorError {
    fn from(reason: ExitReason) -> ActorError {
        ActorError(Box::new(reason))
    }
}

impl From<ActorError> for ExitReason {
    fn from(error: ActorError) -> ExitReason {
        *error.0
    }
}

/// What an async process may end with: nothing, a value, or a result of these.
pub trait Outcome {
    /// As the end of a process.
    fn into_result(self) -> Result<Payload, ActorError>;
}

impl Outcome for () {
    fn into_result(self) -> Result<Payload, ActorError> {
        Ok(Payload::Nil)
    }
}

impl Outcome for Payload {
    fn into_result(self) -> Result<Payload, ActorError> {
        Ok(self)
    }
}

impl<T: Into<Payload>> Outcome for Result<T, ActorError> {
    fn into_result(self) -> Result<Payload, ActorError> {
        self.map(Into::into)
    }
}

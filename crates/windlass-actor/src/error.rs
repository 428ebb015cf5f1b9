//! What can go wrong between processes.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use windlass_runtime::TryCurrentError;
use windlass_value::{ParsePidError, Pid};

use crate::exit::ExitReason;

/// A message that was not delivered; it is handed back.
pub struct SendError<M> {
    /// The message that is handed back.
    pub message: M,
    /// The reason that it was not delivered.
    pub kind: SendErrorKind,
}

/// The reasons that a message is not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// The mailbox is full, in messages or in bytes: wait with `send`, or drop something.
    Full,
    /// The message alone takes more bytes than the mailbox holds: send less at once, or raise
    /// `mailbox_bytes`.
    TooLarge,
    /// There is no such process, or not any more.
    NoProcess,
    /// The process is on another node, and nothing leads there: give the host a relay.
    NoConnection,
    /// The process takes messages of a type that this is none of.
    NotUnderstood,
    /// The child is between two incarnations: its supervisor starts it again. Wait with `send`.
    Restarting,
    /// No supervisor starts the child any more: it gave up or ended, or the child is done.
    Abandoned,
    /// The limit of the sender came before there was room, or a process.
    TimedOut,
}

impl fmt::Display for SendErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendErrorKind::Full => "the mailbox is full: wait with send, or try again later",
            SendErrorKind::TooLarge => {
                "the message takes more bytes than the mailbox holds: send less at once, or raise mailbox_bytes"
            }
            SendErrorKind::NoProcess => "there is no such process, or not any more",
            SendErrorKind::NoConnection => "nothing leads to its node: has the host a relay?",
            SendErrorKind::NotUnderstood => "the process takes messages of another type",
            SendErrorKind::Restarting => {
                "the child is being restarted: wait with send, or try again later"
            }
            SendErrorKind::Abandoned => {
                "no supervisor starts the child any more: see how the supervisor has ended"
            }
            SendErrorKind::TimedOut => {
                "the limit came before there was room for it, or a process to send it to"
            }
        })
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not delivered: {}", self.kind)
    }
}

impl<M> Error for SendError<M> {}

/// Why an `ask` has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskError {
    /// None came in time; the process may still be working on it.
    TimedOut,
    /// The process ended, or dropped the question.
    NoAnswer,
    /// The question did not reach the process.
    Undelivered(SendErrorKind),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskError::TimedOut => {
                f.write_str("no answer came in time; the process may still be working on it")
            }
            AskError::NoAnswer => f.write_str("the process ended or dropped the question"),
            AskError::Undelivered(kind) => write!(f, "the question was not delivered: {kind}"),
        }
    }
}

impl Error for AskError {}

/// Why a process was not started.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SpawnError {
    /// There are as many processes as the host may have.
    LimitExceeded {
        /// The most processes that the host has.
        limit: usize,
    },
    /// The host is shutting down.
    Stopping,
    /// The name belongs to another process.
    NameTaken {
        /// The name that is taken.
        name: Arc<str>,
        /// Who has it.
        owner: Pid,
    },
    /// The process has no such entry point.
    UnknownMethod {
        /// What was asked for.
        method: Arc<str>,
    },
    /// The process did not begin; it was closed.
    Init(ExitReason),
    /// A mailbox holds at least one message.
    NoRoom,
    /// The process that it was to be linked to, or monitored by, has ended.
    NoParent(Pid),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::LimitExceeded { limit } => write!(
                f,
                "the host has {limit} processes and may have no more: raise max_processes, or let some end"
            ),
            SpawnError::Stopping => f.write_str("the host is shutting down"),
            SpawnError::NameTaken { name, owner } => {
                write!(f, "the name {name:?} belongs to {owner}")
            }
            SpawnError::UnknownMethod { method } => {
                write!(f, "the process has no entry point called {method:?}")
            }
            SpawnError::Init(reason) => write!(f, "the process did not begin: {reason}"),
            SpawnError::NoRoom => f.write_str("a mailbox holds at least one message"),
            SpawnError::NoParent(pid) => {
                write!(
                    f,
                    "{pid}, for which the process was to be started, has ended"
                )
            }
        }
    }
}

impl Error for SpawnError {}

/// Why a name was not given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another process has it.
    Taken {
        /// The process that has the name.
        owner: Pid,
    },
    /// There is no such process on this host.
    NoProcess,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Taken { owner } => write!(f, "the name belongs to {owner}"),
            RegisterError::NoProcess => f.write_str("there is no such process on this host"),
        }
    }
}

impl Error for RegisterError {}

/// Why a host was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The name of the host or of its node cannot be part of a PID.
    Name(ParsePidError),
    /// Two handlers for one type of command.
    CommandTwice(&'static str),
    /// A mailbox holds at least one message.
    NoRoom,
    /// The runtime is shutting down.
    Stopping,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Name(error) => fmt::Display::fmt(error, f),
            BuildError::CommandTwice(name) => write!(
                f,
                "{name} has a handler already: register a type of your own, or leave one out"
            ),
            BuildError::NoRoom => f.write_str("a mailbox holds at least one message"),
            BuildError::Stopping => f.write_str("the runtime is shutting down"),
        }
    }
}

impl Error for BuildError {}

/// The reasons that this thread has no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoHost {
    /// This thread is in no runtime.
    NoRuntime(TryCurrentError),
    /// The runtime is shutting down.
    Stopping,
}

impl fmt::Display for NoHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoHost::NoRuntime(error) => fmt::Display::fmt(error, f),
            NoHost::Stopping => f.write_str("the runtime is shutting down"),
        }
    }
}

impl Error for NoHost {}

/// The reasons that `spawn_or_signal` delivered no message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SignalError {
    /// The process could not be started.
    Spawn(SpawnError),
    /// The message was not delivered.
    Undelivered(SendErrorKind),
    /// The process that was started has ended again.
    Gone,
}

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignalError::Spawn(error) => fmt::Display::fmt(error, f),
            SignalError::Undelivered(kind) => write!(f, "not delivered: {kind}"),
            SignalError::Gone => f.write_str("the process was started and has ended again"),
        }
    }
}

impl Error for SignalError {}

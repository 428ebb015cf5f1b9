//! What guests wait for.

use std::fmt;
use std::time::Duration;

use windlass_actor::{Output, Pattern};
use windlass_value::Payload;

use crate::exception::Exception;
use crate::object::{Channel, Mutex, Semaphore};
use crate::task::Task;

/// Why a guest is suspended.
#[non_exhaustive]
pub enum Reason {
    /// Until a task has ended: its value, or why there is none.
    AwaitTask(Task),
    /// For a while.
    Sleep(Duration),
    /// Until the mutex is this guest's. The longest waiter gets it next.
    MutexLock(Mutex),
    /// Until so many permits are this guest's. The longest waiter gets them first.
    SemaphoreAcquire(Semaphore, usize),
    /// Until the channel has taken this value.
    ChannelSend(Channel, Payload),
    /// Until the channel gives a value.
    ChannelReceive(Channel),
    /// Until a message with such a topic is there, or until the timeout.
    Receive {
        /// Which messages; the others stay.
        pattern: Pattern,
        /// Then it is [`Exception::TimedOut`]; with no time at all, if none is there now.
        timeout: Option<Duration>,
    },
    /// Until a process has ended that this one monitors, or is linked to and traps links.
    Exit,
    /// Until this work has been done, on a thread that may block.
    IoWait(Work),
    /// Until a command has been carried out: any that the process's host knows.
    Custom(Custom),
    /// Until one of the waits has ended that the guest has begun
    /// ([`Budget::begin`](crate::Budget::begin)).
    Begun,
}

impl Reason {
    /// Which it is.
    pub fn kind(&self) -> ReasonKind {
        match self {
            Reason::AwaitTask(_) => ReasonKind::AwaitTask,
            Reason::Sleep(_) => ReasonKind::Sleep,
            Reason::MutexLock(_) => ReasonKind::MutexLock,
            Reason::SemaphoreAcquire(..) => ReasonKind::SemaphoreAcquire,
            Reason::ChannelSend(..) => ReasonKind::ChannelSend,
            Reason::ChannelReceive(_) => ReasonKind::ChannelReceive,
            Reason::Receive { .. } => ReasonKind::Receive,
            Reason::Exit => ReasonKind::Exit,
            Reason::IoWait(_) => ReasonKind::IoWait,
            Reason::Custom(_) => ReasonKind::Custom,
            Reason::Begun => ReasonKind::Begun,
        }
    }

    /// Returns what the guest waits for, as recordings say it: with everything that the guest
    /// chose, so that a replay notices that it chooses something else.
    pub(crate) fn description(&self) -> String {
        let kind = self.kind().name();
        match self {
            Reason::Sleep(duration) => format!("{kind} {duration:?}"),
            Reason::SemaphoreAcquire(_, permits) => format!("{kind} {permits}"),
            Reason::Receive {
                pattern,
                timeout: Some(timeout),
            } => format!("{kind} {pattern:?} within {timeout:?}"),
            Reason::Receive { pattern, .. } => format!("{kind} {pattern:?}"),
            _ => kind.to_owned(),
        }
    }

    /// Blocking work: files, libraries that know nothing of us.
    pub fn blocking<F>(work: F) -> Reason
    where
        F: FnOnce() -> Result<Payload, Exception> + Send + 'static,
    {
        Reason::IoWait(Work(Box::new(work)))
    }

    /// A command for the process's host.
    pub fn command<C: Send + 'static>(command: C) -> Reason {
        Reason::Custom(Custom::new(command))
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().name())
    }
}

/// Work that may block.
pub struct Work(pub(crate) Box<Job>);

type Job = dyn FnOnce() -> Result<Payload, Exception> + Send;

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

/// A command of any type.
pub struct Custom(pub(crate) Box<Ask>);

/// Asks for the command, under this tag.
type Ask = dyn FnOnce(u64, &mut Output) + Send;

impl Custom {
    /// Makes a wait from a command.
    pub fn new<C: Send + 'static>(command: C) -> Custom {
        Custom(Box::new(move |tag, out| out.request(tag, command)))
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Custom")
    }
}

macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        /// What a guest waits for, without the details.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are those of Reason")]
        #[non_exhaustive]
        pub enum ReasonKind { $($kind,)* }

        impl ReasonKind {
            /// All of them.
            pub const ALL: &[ReasonKind] = &[$(ReasonKind::$kind,)*];

            /// As in recordings and snapshots.
            pub fn name(self) -> &'static str {
                match self { $(ReasonKind::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    AwaitTask "await_task",
    Sleep "sleep",
    MutexLock "mutex_lock",
    SemaphoreAcquire "semaphore_acquire",
    ChannelSend "channel_send",
    ChannelReceive "channel_receive",
    Receive "receive",
    Exit "exit",
    IoWait "io_wait",
    Custom "custom",
    Begun "begun",
}

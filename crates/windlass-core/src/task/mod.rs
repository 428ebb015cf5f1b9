//! The task: one allocation that holds a header, a body and a join cell.
//!
//! A body is anything that can be resumed until it has an output ([`Body`]): a future, a closure,
//! later a coroutine, a process step, a VM slice, a graph invocation. The scheduler sees only the
//! header and its vtable.
//!
//! # The access protocol
//!
//! Every `unsafe` block of this module and of the scheduler names the rule it relies on.
//!
//! 1. **Entry.** A [`Entry`] is the scheduler's reference: exactly one exists per task that is not
//!    COMPLETE. While the task is SCHEDULED a queue owns it, while RUNNING a worker, while IDLE
//!    the registry. The thread that moves the task from IDLE to HELD takes it over.
//! 2. **Stage.** Only the owner of the entry touches the body. The completer writes the output
//!    before it sets COMPLETE. After COMPLETE the output belongs to the join handle if
//!    JOIN_INTEREST was set at that moment; otherwise the completer has dropped it before.
//! 3. **Join waker.** While JOIN_WAKER is not set and the task is not COMPLETE the join handle has
//!    exclusive access. While it is set both sides only read. After COMPLETE the completer clears
//!    it; the last of the two to look (`end_join_wake`, `forget_join`) drops the waker.
//! 4. **Link.** `link` belongs to the owner of the entry. It holds the task's home; a linked queue
//!    (injector, batch) uses it meanwhile, and the thread that takes the entry out puts the home
//!    back.
//! 5. **Registration.** `slot` belongs to the owner of the entry. A slot of the registry holds the
//!    task from its first suspension until just before COMPLETE; who claims the slot may take a
//!    reference.
//! 6. **Home.** A task's pool or local set is dereferenced by the pool's own workers, or by the
//!    thread that has just moved the task to HELD and not yet queued it: the pool waits for that
//!    task.
//! 7. **References.** The block is freed by the thread that gives up the last one. That runs no
//!    user code: body, output and join waker are gone by then.
//! 8. **Thread.** Bodies of local tasks are touched on their home thread only, and so are outputs
//!    that are not `Send`; an output that is `Send` may be taken elsewhere once the task is
//!    complete, as rule 2 says. The body of a task that is PINNED is touched by the thread it is
//!    pinned to, and its entry waits in queues that only this thread takes from.

pub(crate) mod block;
mod budget;
mod cell;
mod entry;
mod error;
mod header;
mod job;
mod join;
mod join_waker;
mod meta;
mod registry;
mod residence;
mod shield;
mod spawn_request;
pub mod state;
mod waker;
mod yield_now;

pub use block::{BlockCache, block_cache};
pub use budget::{Budget, BudgetUnit, spend, unlimited};
pub(crate) use cell::allocate;
pub use cell::{Body, Closure, FutureBody};
pub use entry::{Entry, RunOutcome, Scheduler};
pub use error::{JoinError, JoinErrorKind, Unwound, contain, drop_payload, panic_message};
pub use header::{Ending, Header, TaskRef};
pub use job::Job;
pub use join::{AbortHandle, JoinHandle};
pub use meta::{Meta, Name, TaskId};
pub use registry::{Registry, Shard};
pub(crate) use residence::Residence;
pub use shield::{Shield, shield};
pub use spawn_request::{BeforeFirstPoll, NoHook, SpawnRequest};
pub use waker::with_context;
pub use yield_now::yield_now;

/// Runtime priority of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// The default: local queues, no extra cost.
    #[default]
    Normal = 0,
    /// Looked at before everything else; after 63 in a row one normal task runs.
    High = 1,
    /// Runs when nothing normal is found, or when it has waited for 100 ms.
    Low = 2,
    /// Runs when nothing else is found, or when it has waited for a second.
    Background = 3,
}

/// Everything a spawn can say about its task.
#[derive(Debug, Clone)]
pub struct Options {
    /// Shown in dumps, traces and stall reports.
    pub name: Option<Name>,
    /// The priority class of the task.
    pub class: Class,
    /// Where the spawn stands in the source.
    pub location: &'static std::panic::Location<'static>,
    /// Whether the task gets a number of its own even without a name or class.
    pub numbered: bool,
}

impl Options {
    /// Normal class, no name, the caller's location.
    #[track_caller]
    pub fn here() -> Options {
        Options {
            name: None,
            class: Class::Normal,
            location: std::panic::Location::caller(),
            numbered: false,
        }
    }
}

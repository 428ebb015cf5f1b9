//! The one request that every spawn makes, wherever its task is to run.
//!
//! Each kind of executor has one entry that takes a request: [`Pool::spawn`], the local set's
//! `spawn_request`, [`ExternalExecutor::make`], [`spawn_unconfined`]. All of them come to
//! [`SpawnRequest::allocate`], so that a new property of tasks is a field here and not a function
//! at each of them.
//!
//! Rejected: a hook behind a pointer. A plain spawn would test it; as a type parameter the hook
//! that does nothing costs no instruction.
//!
//! [`Pool::spawn`]: crate::sched::pool::Pool::spawn
//! [`ExternalExecutor::make`]: crate::executor::external::ExternalExecutor::make
//! [`spawn_unconfined`]: crate::executor::external::spawn_unconfined

use crate::task::cell::allocate;
use crate::task::{Body, Entry, JoinHandle, Options, Residence, TaskId};

/// What happens between the making of a task and its first queue.
pub trait BeforeFirstPoll {
    /// Looks at the new task. No worker can poll it before this returns.
    fn call(self, entry: &Entry);
}

/// The hook of a request that has none.
#[derive(Debug, Clone, Copy)]
pub struct NoHook;

impl BeforeFirstPoll for NoHook {
    #[inline]
    fn call(self, _entry: &Entry) {}
}

impl<F: FnOnce(&Entry)> BeforeFirstPoll for F {
    #[inline]
    fn call(self, entry: &Entry) {
        self(entry);
    }
}

/// A task that is to be started: its body, its options, and a hook that sees it before it runs.
#[derive(Debug)]
#[must_use = "a request does nothing until an executor takes it"]
pub struct SpawnRequest<B, H = NoHook> {
    pub(crate) body: B,
    pub(crate) options: Options,
    hook: H,
}

impl<B> SpawnRequest<B> {
    /// Requests a task with this body and these options, without a hook.
    #[inline]
    pub fn new(body: B, options: Options) -> Self {
        SpawnRequest {
            body,
            options,
            hook: NoHook,
        }
    }

    /// Calls `hook` with the task before any worker can poll it.
    #[inline]
    pub fn before_first_poll<H: FnOnce(&Entry)>(self, hook: H) -> SpawnRequest<B, H> {
        let SpawnRequest { body, options, .. } = self;
        SpawnRequest {
            body,
            options,
            hook,
        }
    }
}

impl<B, H> SpawnRequest<B, H> {
    /// Wraps the body, and keeps the options and the hook.
    #[inline]
    pub fn map_body<C>(self, wrap: impl FnOnce(B) -> C) -> SpawnRequest<C, H> {
        let SpawnRequest {
            body,
            options,
            hook,
        } = self;
        SpawnRequest {
            body: wrap(body),
            options,
            hook,
        }
    }

    /// Gives the task a number of its own if `numbered`, even without a name or class.
    #[inline]
    pub fn numbered(mut self, numbered: bool) -> Self {
        self.options.numbered |= numbered;
        self
    }
}

impl<B: Body, H: BeforeFirstPoll> SpawnRequest<B, H> {
    /// Makes the task and its handle, and calls the hook. The task is not queued yet.
    ///
    /// The bounds are those of the caller: pools demand `Send`, local sets keep to one thread (rule
    /// 8).
    #[inline(always)]
    pub(crate) fn allocate(
        self,
        residence: Residence,
        id: impl FnOnce() -> TaskId,
    ) -> (Entry, JoinHandle<B::Output>) {
        let SpawnRequest {
            body,
            options,
            hook,
        } = self;
        let entry = allocate(body, residence, id, options, true);
        // SAFETY: rules 2 and 7: the task was made joinable, so this reference is counted.
        let handle = unsafe { JoinHandle::from_raw(entry.as_ptr()) };
        hook.call(&entry);
        (entry, handle)
    }
}

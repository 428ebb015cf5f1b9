//! A local set: tasks that never leave their thread.
//!
//! The set is a small scheduler of its own, polled by the task that awaits it on its home thread.
//! Its tasks are the same blocks with the same state word; only their wakes go elsewhere: into the
//! set's queue on the home thread while the set runs, into its inbox from anywhere else.
//!
//! A set with coroutines is kept by its thread until they have ended: when the thread ends, they
//! unwind before its thread-locals go (`thread_end`), also if the set itself was leaked, is kept in
//! one of these thread-locals, or was dropped while the thread unwound.

mod current;
mod entered;
mod finish;
mod kept;
mod shared;
mod tasks;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use self::tasks::LocalTasks;
use crate::deep::nested_levels;
use crate::sync::thread;
use crate::task::{BeforeFirstPoll, Body, FutureBody, JoinHandle, Options, SpawnRequest};

pub use self::current::{spawn_local, spawn_local_request};
pub use self::entered::LocalEnterGuard;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub(crate) use self::kept::finish_sets_of_thread;
pub(crate) use self::kept::{finish_orphans, note_coroutine};
pub(crate) use self::shared::LocalShared;

/// Runs `!Send` futures on the thread that made it.
///
/// Drive it with [`run_until`](LocalSet::run_until); dropping it drops its tasks, on this thread,
/// and lets its coroutines unwind, which waits for the children of their scopes. Inside of a
/// future, or of a task that panics, the drop does not wait: the worker does the rest. A coroutine
/// that catches its cancellation and waits again, a thousand times over, is leaked, and so is one
/// that waits for children of its scope when the set is dropped in a simulation. While the
/// thread unwinds, coroutines cannot: they do when the task, or the outermost call that runs tasks,
/// has caught the panic, or else when the thread ends.
pub struct LocalSet {
    /// `!Send`: bodies and outputs stay on the home thread (rule 8).
    tasks: Rc<LocalTasks>,
}

impl Default for LocalSet {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalSet {
    /// An empty set, at home on this thread.
    pub fn new() -> LocalSet {
        LocalSet {
            tasks: Rc::new(LocalTasks::new()),
        }
    }

    /// Starts a task on this thread. It runs while the set is awaited. Its handle can be sent to
    /// another thread if its output can.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.spawn_request(SpawnRequest::new(FutureBody(future), Options::here()))
    }

    /// Starts a task with a body of any kind on this thread, as `spawn_local` does.
    pub fn spawn_request<B, H>(&self, request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
    where
        B: Body + 'static,
        B::Output: 'static,
        H: BeforeFirstPoll,
    {
        self.tasks.spawn(request)
    }

    /// Awaits `future`, and runs the set's tasks meanwhile.
    pub fn run_until<F: Future>(&self, future: F) -> RunUntil<'_, F> {
        RunUntil { set: self, future }
    }
}

/// The future of [`LocalSet::run_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct RunUntil<'a, F> {
    set: &'a LocalSet,
    future: F,
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is structurally pinned and never moved; `set` is a plain reference.
        let (set, future) = unsafe {
            let this = self.get_unchecked_mut();
            (this.set, Pin::new_unchecked(&mut this.future))
        };
        let tasks = &set.tasks;
        tasks.remember_waker(cx);
        tasks.enter(|| {
            if let Poll::Ready(output) = future.poll(cx) {
                return Poll::Ready(output);
            }
            if tasks.tick() {
                cx.waker().wake_by_ref();
            }
            Poll::Pending
        })
    }
}

/// Runs the set's tasks until all of them have ended. Cancel-safe.
impl Future for LocalSet {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let tasks = &self.tasks;
        tasks.remember_waker(cx);
        tasks.enter(|| {
            if tasks.tick() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            // None is queued, so every task that is left is suspended, and registered.
            match tasks.shard.registry().is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
    }
}

/// The frames of this drop are as large as those of so many nested destructors of outputs: it runs
/// the set.
const LEVELS_OF_DROP: u32 = 4;

/// Ends every task of the set, here, on its home thread.
impl Drop for LocalSet {
    fn drop(&mut self) {
        // A task may hold another set, and so on.
        nested_levels(LEVELS_OF_DROP, || match thread::panicking() {
            false => self.tasks.finish(),
            true => self.tasks.finish_but_coroutines(),
        });
    }
}

impl std::fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalSet")
            .field("suspended", &self.tasks.shard.registry().len())
            .field("inbox", &self.tasks.shared.inbox.len())
            .finish_non_exhaustive()
    }
}

impl<F> std::fmt::Debug for RunUntil<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunUntil")
            .field("set", self.set)
            .finish_non_exhaustive()
    }
}

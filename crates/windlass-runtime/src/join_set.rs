//! A set of tasks that are awaited in the order in which they end.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use windlass_core::executor::local_set::{self, LocalSet};
use windlass_core::task::{AbortHandle, JoinError, JoinHandle, TaskId};

use crate::handle::{Handle, spawn};
use crate::ready_set::ReadySet;

/// Tasks with results of one type, awaited in the order in which they end. Dropping the set aborts
/// those that run.
///
/// ```
/// use windlass_runtime::{Runtime, task::JoinSet};
///
/// let runtime = Runtime::new()?;
/// let sum: u32 = runtime.block_on(async {
///     let mut set = JoinSet::new();
///     for number in 1..=4 {
///         set.spawn(async move { number });
///     }
///     set.join_all().await.into_iter().sum()
/// });
/// assert_eq!(sum, 10);
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
pub struct JoinSet<T> {
    members: HashMap<u64, Member<T>>,
    next_key: u64,
    ready: Arc<ReadySet>,
}

struct Member<T> {
    task: JoinHandle<T>,
    waker: Waker,
}

impl<T> JoinSet<T> {
    /// Makes an empty set.
    pub fn new() -> JoinSet<T> {
        JoinSet {
            members: HashMap::new(),
            next_key: 0,
            ready: Arc::default(),
        }
    }

    /// Returns the number of tasks whose results were not taken.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns true if no task is in the set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<T: 'static> JoinSet<T> {
    /// Starts a task on the runtime this thread is in, or else on the process-wide default.
    #[track_caller]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(spawn(task))
    }

    /// Starts a task on `handle`'s runtime.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn(task))
    }

    /// Runs a closure that may block, on a thread for such closures.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(crate::handle::spawn_blocking(f))
    }

    /// Runs a closure that may block, on a thread of `handle`'s runtime for such closures.
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn_blocking(f))
    }

    /// Starts a task on the local set that this thread runs, or has entered.
    ///
    /// # Panics
    /// As [`task::spawn_local`](crate::task::spawn_local).
    #[track_caller]
    pub fn spawn_local<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(local_set::spawn_local(task))
    }

    /// Starts a task on `set`, which runs it on its own thread.
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, task: F, set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(set.spawn_local(task))
    }

    /// Puts a task into the set that runs already.
    pub(crate) fn insert(&mut self, task: JoinHandle<T>) -> AbortHandle {
        let abort = task.abort_handle();
        self.next_key += 1;
        let key = self.next_key;
        // Its first look registers the waker with the task.
        let waker = self.ready.join(key);
        self.members.insert(key, Member { task, waker });
        abort
    }

    /// Waits for the next task that ends; none if the set is empty. Cancel-safe: a dropped wait
    /// loses no result.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Waits for the next task that ends, and returns its id, too. Cancel-safe as
    /// [`JoinSet::join_next`].
    pub async fn join_next_with_id(&mut self) -> Option<Result<(TaskId, T), JoinError>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx)).await
    }

    /// Returns the result of a task that has ended; none if there is no such task.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        let ended = self.try_join_next_with_id()?;
        Some(ended.map(|(_, value)| value))
    }

    /// Returns the result of a task that has ended, with its id; none if there is no such task.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(TaskId, T), JoinError>> {
        // Those whose wakers fired are looked at, and again at the next wait.
        let ended = windlass_core::task::unlimited(|| {
            self.poll_join_next_with_id(&mut Context::from_waker(Waker::noop()))
        });
        match ended {
            Poll::Ready(ended) => ended,
            Poll::Pending => None,
        }
    }

    /// Polls for what [`JoinSet::join_next`] awaits.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        let ended = ready!(self.poll_join_next_with_id(cx));
        Poll::Ready(ended.map(|ended| ended.map(|(_, value)| value)))
    }

    /// Polls for what [`JoinSet::join_next_with_id`] awaits.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(TaskId, T), JoinError>>> {
        if self.members.is_empty() {
            return Poll::Ready(None);
        }
        loop {
            let key = ready!(self.ready.poll_next(cx));
            let Some(member) = self.members.get_mut(&key) else {
                continue;
            };
            let mut member_cx = Context::from_waker(&member.waker);
            let Poll::Ready(ended) = Pin::new(&mut member.task).poll(&mut member_cx) else {
                continue;
            };
            let id = member.task.id();
            self.members.remove(&key);
            return Poll::Ready(Some(ended.map(|value| (id, value))));
        }
    }

    /// Waits for all tasks and returns their results in the order of their ends.
    ///
    /// # Panics
    /// If a task panicked: with its payload. If a task was cancelled. The others are aborted then.
    pub async fn join_all(mut self) -> Vec<T> {
        let mut results = Vec::with_capacity(self.len());
        while let Some(ended) = self.join_next().await {
            match ended.map_err(JoinError::try_into_panic) {
                Ok(value) => results.push(value),
                Err(Ok(payload)) => resume_unwind(payload),
                Err(Err(cancelled)) => panic!("{cancelled}"),
            }
        }
        results
    }

    /// Aborts all tasks and waits until they have ended.
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    /// Aborts all tasks. They stay in the set until their results are taken.
    pub fn abort_all(&mut self) {
        for member in self.members.values() {
            member.task.abort();
        }
    }

    /// Takes all tasks out of the set and lets them run on.
    pub fn detach_all(&mut self) {
        self.members.clear();
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        for member in self.members.values() {
            member.task.abort();
        }
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        JoinSet::new()
    }
}

impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn from_iter<I: IntoIterator<Item = F>>(tasks: I) -> Self {
        let mut set = JoinSet::new();
        set.extend(tasks);
        set
    }
}

impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn extend<I: IntoIterator<Item = F>>(&mut self, tasks: I) {
        for task in tasks {
            self.spawn(task);
        }
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}

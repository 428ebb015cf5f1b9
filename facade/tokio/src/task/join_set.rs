//! A set of tasks that are joined in the order of their ends.
//!
//! Each member has a waker that puts its number into a queue, so that a poll looks only at members
//! that have something to say.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

use windlass_core::sync::Mutex;
use windlass_core::task::spend;

use super::{AbortHandle, Id, JoinError, JoinHandle, LocalSet};
use crate::runtime::Handle;

/// Tasks of one kind of output; dropped, the set aborts them.
pub struct JoinSet<T> {
    members: HashMap<u64, (JoinHandle<T>, Waker)>,
    next: u64,
    ready: Arc<Ready>,
}

/// The numbers of the members whose wakers fired, and the waker of the set's owner.
#[derive(Default)]
struct Ready(Mutex<(VecDeque<u64>, Option<Waker>)>);

struct Member {
    number: u64,
    ready: Arc<Ready>,
}

impl Wake for Member {
    fn wake(self: Arc<Self>) {
        let mut ready = self.ready.0.lock();
        ready.0.push_back(self.number);
        let owner = ready.1.take();
        drop(ready);
        if let Some(owner) = owner {
            owner.wake();
        }
    }
}

impl<T: 'static> JoinSet<T> {
    /// Makes an empty set.
    pub fn new() -> JoinSet<T> {
        JoinSet {
            members: HashMap::new(),
            next: 0,
            ready: Arc::default(),
        }
    }

    /// Returns how many tasks have not been joined.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns true if every task has been joined.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn insert(&mut self, handle: JoinHandle<T>) -> AbortHandle {
        let abort = handle.abort_handle();
        let number = self.next;
        self.next += 1;
        let waker = Waker::from(Arc::new(Member {
            number,
            ready: self.ready.clone(),
        }));
        // The first poll leaves the waker with the task.
        waker.wake_by_ref();
        self.members.insert(number, (handle, waker));
        abort
    }

    /// Starts a task on the runtime this thread is in.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(super::spawn(task))
    }

    /// Starts a task on another runtime.
    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn(task))
    }

    /// Starts a task on the local set that runs here.
    ///
    /// # Panics
    /// Outside of a local set.
    #[track_caller]
    pub fn spawn_local<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(super::spawn_local(task))
    }

    /// Starts a task on a local set.
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, task: F, set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(set.spawn_local(task))
    }

    /// Runs a closure that may block.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(super::spawn_blocking(f))
    }

    /// Runs a closure that may block on another runtime.
    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn_blocking(f))
    }

    /// Waits for the next task that ends; none if the set is empty. Cancel-safe.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// Waits for the next task that ends, and gives its id.
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx)).await
    }

    /// Joins a task that has ended; none if there is no such task.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        Some(self.try_join_next_with_id()?.map(|(_, output)| output))
    }

    /// Joins a task that has ended, and gives its id; none if there is no such task.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        loop {
            let number = self.ready.0.lock().0.pop_front()?;
            if let Poll::Ready(joined) = self.poll_member(number) {
                return Some(joined);
            }
        }
    }

    /// Aborts all tasks and waits for their ends.
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    /// Waits for all tasks and gives their outputs in the order of their ends.
    ///
    /// # Panics
    /// If a task panicked or was aborted.
    pub async fn join_all(mut self) -> Vec<T> {
        let mut outputs = Vec::with_capacity(self.len());
        while let Some(joined) = self.join_next().await {
            match joined {
                Ok(output) => outputs.push(output),
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                Err(error) => panic!("{error}"),
            }
        }
        outputs
    }

    /// Aborts all tasks; they are joined as those that end by themselves.
    pub fn abort_all(&mut self) {
        for (handle, _) in self.members.values() {
            handle.abort();
        }
    }

    /// Takes all tasks out of the set; they go on.
    pub fn detach_all(&mut self) {
        self.members.clear();
    }

    /// Polls for what `join_next` awaits.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        let joined = ready!(self.poll_join_next_with_id(cx));
        Poll::Ready(joined.map(|joined| joined.map(|(_, output)| output)))
    }

    /// Polls for what `join_next_with_id` awaits.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        if self.members.is_empty() {
            return Poll::Ready(None);
        }
        let unit = ready!(spend(cx));
        loop {
            let mut ready = self.ready.0.lock();
            let Some(number) = ready.0.pop_front() else {
                let old = ready.1.replace(cx.waker().clone());
                drop(ready);
                // Dropped outside of the lock: a waker's drop may run anything.
                drop(old);
                return Poll::Pending;
            };
            drop(ready);
            if let Poll::Ready(joined) = self.poll_member(number) {
                unit.made_progress();
                return Poll::Ready(Some(joined));
            }
        }
    }

    fn poll_member(&mut self, number: u64) -> Poll<Result<(Id, T), JoinError>> {
        let Some((handle, waker)) = self.members.get_mut(&number) else {
            return Poll::Pending;
        };
        let id = handle.id();
        // The unit of the whole poll is enough; without one the member would ask for another poll
        // of its own and be looked at again and again.
        let output = ready!(Pin::new(handle).poll(&mut Context::from_waker(waker)));
        self.members.remove(&number);
        Poll::Ready(output.map(|output| (id, output)))
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        for (handle, _) in self.members.values() {
            handle.abort();
        }
    }
}

impl<T: 'static> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet")
            .field("len", &self.members.len())
            .finish()
    }
}

/// A set of tasks that are spawned on the runtime this thread is in.
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    fn from_iter<I: IntoIterator<Item = F>>(tasks: I) -> Self {
        let mut set = Self::new();
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

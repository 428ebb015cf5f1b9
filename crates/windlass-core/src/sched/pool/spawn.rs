//! Starting tasks on a pool.

use super::Pool;
use crate::context;
use crate::sync::atomic::Ordering;
use crate::task::state::Home;
use crate::task::{Body, Entry, JoinHandle, Options, TaskId};

/// `try_spawn` did not take the task.
pub enum TrySpawnError<B> {
    /// The injector is at its capacity.
    Full(B),
    /// The pool is stopping.
    Stopping(B),
}

impl<B> std::fmt::Debug for TrySpawnError<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TrySpawnError::Full(_) => "Full",
            TrySpawnError::Stopping(_) => "Stopping",
        })
    }
}

/// A task that a stopping pool did not take, if it did not. Dropping this drops the task, and its
/// handle resolves.
#[derive(Debug)]
#[must_use = "dropping it runs the task's destructors"]
pub struct Refused(Option<Entry>);

impl Drop for Refused {
    #[inline]
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            entry.refuse();
        }
    }
}

impl Pool {
    /// Starts a task. Never refused while the pool runs; once it is stopping the task is dropped
    /// and its handle resolves with `Cancelled`.
    #[inline]
    pub fn spawn<B>(&self, body: B, options: Options) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.spawn_or_refuse(body, options).0
    }

    /// As `spawn`; a task that is refused comes back and is dropped by the caller, who may want to
    /// let go of something before user code runs.
    #[inline]
    pub fn spawn_or_refuse<B>(&self, body: B, options: Options) -> (JoinHandle<B::Output>, Refused)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.spawn_known(body, options, |_| {})
    }

    /// As `spawn_or_refuse`; `know` is told of the task before it can run.
    #[inline]
    pub fn spawn_known<B>(
        &self,
        body: B,
        options: Options,
        know: impl FnOnce(&Entry),
    ) -> (JoinHandle<B::Output>, Refused)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        context::with_worker(|worker| match worker {
            Some(worker) if std::ptr::eq(&raw const *worker.pool, self) => {
                let (entry, handle) = self.make(body, || worker.next_id(), options);
                know(&entry);
                if self.stop.is_stopping() {
                    return (handle, Refused(Some(entry)));
                }
                worker.spawn(entry);
                (handle, Refused(None))
            }
            _ => self.spawn_known_from_outside(body, options, know),
        })
    }

    /// As `spawn_or_refuse`, for a thread that is none of the pool's workers.
    #[inline]
    pub fn spawn_from_outside<B>(
        &self,
        body: B,
        options: Options,
    ) -> (JoinHandle<B::Output>, Refused)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.spawn_known_from_outside(body, options, |_| {})
    }

    #[inline]
    fn spawn_known_from_outside<B>(
        &self,
        body: B,
        options: Options,
        know: impl FnOnce(&Entry),
    ) -> (JoinHandle<B::Output>, Refused)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.outside.submitted.fetch_add(1, Ordering::Relaxed);
        let (entry, handle) = self.make(body, || self.next_id(), options);
        know(&entry);
        if self.stop.is_stopping() {
            return (handle, Refused(Some(entry)));
        }
        (handle, Refused(self.try_inject(entry).err()))
    }

    /// Starts a task unless the injector is full or the pool is stopping; hands the body back then.
    pub fn try_spawn<B>(
        &self,
        body: B,
        options: Options,
    ) -> Result<JoinHandle<B::Output>, TrySpawnError<B>>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        if self.stop.is_stopping() {
            return Err(TrySpawnError::Stopping(body));
        }
        if self.injector.len() >= self.config.injector_capacity {
            self.outside.refused.fetch_add(1, Ordering::Relaxed);
            return Err(TrySpawnError::Full(body));
        }
        Ok(self.spawn(body, options))
    }

    #[inline]
    fn make<B>(
        &self,
        body: B,
        id: impl FnOnce() -> TaskId,
        options: Options,
    ) -> (Entry, JoinHandle<B::Output>)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        let home = self.as_home();
        let numbered = options.numbered || self.config.simulated;
        let options = Options {
            numbered,
            in_order: self.config.in_order,
            ..options
        };
        let entry = crate::task::allocate(body, Home::Pool, home, id, options, true);
        // SAFETY: rules 2 and 7: the task was made joinable, so this reference is counted.
        let handle = unsafe { JoinHandle::from_raw(entry.as_ptr()) };
        (entry, handle)
    }

    pub(crate) fn next_id(&self) -> TaskId {
        TaskId::numbered(
            u16::MAX,
            self.outside.ids.fetch_add(1, Ordering::Relaxed) + 1,
        )
    }
}

/// Starts a task on the pool whose worker this thread is.
///
/// # Panics
/// Elsewhere; see [`on_worker`](super::on_worker).
#[inline]
pub fn spawn_here<B>(body: B, options: Options) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
{
    context::with_worker(|worker| match worker {
        Some(worker) => worker.pool.spawn(body, options),
        None => panic!("spawn_here on a thread that is no worker"),
    })
}

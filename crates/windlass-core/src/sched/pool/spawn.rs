//! Starting tasks on a pool.

use super::Pool;
use crate::context;
use crate::sched::worker::Worker;
use crate::sync::atomic::Ordering;
use crate::task::state::Home;
use crate::task::{BeforeFirstPoll, Body, Entry, JoinHandle, SpawnRequest, TaskId};

/// Why a pool admits no further task at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionError {
    /// The injector is at its capacity.
    Full,
    /// The pool is stopping.
    Stopping,
}

/// Holds the task that a stopping pool did not take, or nothing. Dropping this drops the task, and
/// its handle resolves.
#[derive(Debug)]
#[must_use = "dropping it runs the task's destructors"]
pub struct RefusedTask(Option<Entry>);

impl Drop for RefusedTask {
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
    pub fn spawn<B, H>(&self, request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        self.spawn_or_refuse(request).0
    }

    /// Starts a task as `spawn` does, and gives a task that is refused to the caller, who may have
    /// to let go of something before the task's destructors run.
    #[inline]
    pub fn spawn_or_refuse<B, H>(
        &self,
        mut request: SpawnRequest<B, H>,
    ) -> (JoinHandle<B::Output>, RefusedTask)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        request.options.numbered |= self.config.simulated;
        request.options.in_order = self.config.in_order;
        let (entry, handle) = request.allocate(Home::Pool, self.as_home(), || self.next_id());
        (handle, RefusedTask(self.submit_new(entry).err()))
    }

    /// Queues a new task: on this thread's worker if it is one of this pool, through the injector
    /// otherwise. Gives the task back if the pool is stopping.
    #[inline]
    fn submit_new(&self, entry: Entry) -> Result<(), Entry> {
        self.with_own_worker(|worker| {
            if worker.is_none() {
                self.outside.submitted.fetch_add(1, Ordering::Relaxed);
            }
            if self.stop.is_stopping() {
                return Err(entry);
            }
            match worker {
                Some(worker) => {
                    worker.spawn(entry);
                    Ok(())
                }
                None => self.try_inject(entry),
            }
        })
    }

    /// Calls `f` with this thread's worker if it is one of this pool.
    #[inline]
    fn with_own_worker<R>(&self, f: impl FnOnce(Option<&Worker>) -> R) -> R {
        context::with_worker(|worker| {
            f(worker.filter(|worker| std::ptr::eq(&raw const *worker.pool, self)))
        })
    }

    /// Says whether the pool admits a further task now: the injector has room and the pool is not
    /// stopping. An injector that is full counts as a refusal in the snapshot.
    pub fn admit(&self) -> Result<(), AdmissionError> {
        if self.stop.is_stopping() {
            return Err(AdmissionError::Stopping);
        }
        if self.injector.len() >= self.config.injector_capacity {
            self.outside.refused.fetch_add(1, Ordering::Relaxed);
            return Err(AdmissionError::Full);
        }
        Ok(())
    }

    /// The number of the next task. Workers count on their own, and so does everything outside.
    fn next_id(&self) -> TaskId {
        self.with_own_worker(|worker| match worker {
            Some(worker) => worker.next_id(),
            None => TaskId::numbered(
                u16::MAX,
                self.outside.ids.fetch_add(1, Ordering::Relaxed) + 1,
            ),
        })
    }
}

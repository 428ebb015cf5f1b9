//! Starting tasks on a pool.

use super::Pool;
use crate::context;
use crate::sched::worker::Worker;
use crate::sync::atomic::Ordering;
use crate::task::state::Home;
use crate::task::{BeforeFirstPoll, Body, Entry, JoinHandle, Residence, SpawnRequest, TaskId};

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
        request: SpawnRequest<B, H>,
    ) -> (JoinHandle<B::Output>, RefusedTask)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        context::with_worker(|worker| {
            let own = worker.filter(|worker| std::ptr::eq(&raw const *worker.pool, self));
            self.spawn_from(own, request)
        })
    }

    /// Starts a task as `spawn_or_refuse` does, from a thread that is no worker of any pool. Such a
    /// spawn need not look for its worker.
    #[inline]
    pub fn spawn_from_outside<B, H>(
        &self,
        request: SpawnRequest<B, H>,
    ) -> (JoinHandle<B::Output>, RefusedTask)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        self.spawn_from(None, request)
    }

    /// Makes a task and queues it: on `worker`, which is one of this pool, or through the injector.
    ///
    /// Always inlined, down to the allocation: a request that goes through memory is written in
    /// single fields and read in wide loads right afterwards, which the processor cannot forward.
    /// The stall took 7 of 32 ns in a chain of spawns.
    #[inline(always)]
    fn spawn_from<B, H>(
        &self,
        worker: Option<&Worker>,
        request: SpawnRequest<B, H>,
    ) -> (JoinHandle<B::Output>, RefusedTask)
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        if worker.is_none() {
            self.outside.submitted.fetch_add(1, Ordering::Relaxed);
        }
        let residence = Residence {
            home: Home::Pool,
            pointer: self.as_home(),
            in_order: self.config.in_order,
            numbered: self.config.simulated,
        };
        let (entry, handle) = request.allocate(residence, || self.next_id(worker));
        (handle, RefusedTask(self.submit_new(worker, entry).err()))
    }

    /// Queues a new task, and gives it back if the pool is stopping.
    #[inline]
    fn submit_new(&self, worker: Option<&Worker>, entry: Entry) -> Result<(), Entry> {
        match worker {
            _ if self.stop.is_stopping() => Err(entry),
            Some(worker) => {
                worker.spawn(entry);
                Ok(())
            }
            None => self.try_inject(entry),
        }
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
    fn next_id(&self, worker: Option<&Worker>) -> TaskId {
        match worker {
            Some(worker) => worker.next_id(),
            None => TaskId::numbered(
                u16::MAX,
                self.outside.ids.fetch_add(1, Ordering::Relaxed) + 1,
            ),
        }
    }
}

/// Starts a task on the pool whose worker this thread is, or calls `elsewhere` if it is none.
#[inline]
pub fn spawn_here_or<B, H>(
    request: SpawnRequest<B, H>,
    elsewhere: impl FnOnce(SpawnRequest<B, H>) -> JoinHandle<B::Output>,
) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
    H: BeforeFirstPoll,
{
    context::with_worker(|worker| match worker {
        Some(own) => own.pool.spawn_from(worker, request).0,
        None => elsewhere(request),
    })
}

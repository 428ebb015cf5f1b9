//! Tasks that are ready come to a pool: from its workers, and from outside.

use std::cell::Cell;

use super::Pool;
use crate::context;
use crate::queue::{Batch, Closed};
use crate::sync::atomic::Ordering;
use crate::sync::{Arc, Wakeup, clock};
use crate::task::{Class, Entry, Header};

impl Pool {
    /// Queues a task that was just moved from IDLE to HELD: on this thread's worker if it is one
    /// of the task's own pool, through the injector otherwise.
    ///
    /// # Safety
    /// Rule 6: `pool` is the task's pool and `entry` has not been queued yet.
    #[inline]
    pub(crate) unsafe fn submit_woken(pool: *const Pool, entry: Entry) {
        context::with_worker(|worker| match worker {
            Some(worker) if std::ptr::eq(&raw const *worker.pool, pool) => worker.wake(entry),
            // SAFETY: passed on.
            _ => unsafe { submit_from_outside(pool, entry) },
        });
    }

    /// Queues a task that is no pool's, for any worker.
    pub fn adopt(&self, entry: Entry) {
        self.inject(entry);
    }

    /// Queues a task for any worker; once the pool is gone the task goes too.
    pub(crate) fn inject(&self, entry: Entry) {
        if let Err(entry) = self.try_inject(entry) {
            entry.refuse();
        }
    }

    pub(super) fn try_inject(&self, entry: Entry) -> Result<(), Entry> {
        if let Some(worker) = entry.header().state().pinned_to() {
            return self.leave_for(worker, entry);
        }
        let class = entry.header().state().class();
        let pushed = match class {
            Class::Normal => {
                // SAFETY: rule 1: the entry is ours to queue and keeps the task alive.
                let pushed = unsafe { self.injector.push(entry.into_raw()) };
                // SAFETY: rule 1: a closed queue gives the entry back.
                pushed.map_err(|Closed(item)| unsafe { Entry::from_raw(item) })
            }
            _ => self.classes.push(class, entry, clock::now()),
        };
        pushed?;
        self.announce();
        Ok(())
    }

    /// Queues a task that only `worker` may run, and notifies it.
    #[cold]
    fn leave_for(&self, worker: usize, entry: Entry) -> Result<(), Entry> {
        // SAFETY: rule 1: the entry is ours to queue and keeps the task alive.
        let pushed = unsafe { self.crew.remote(worker).inbox.push(entry.into_raw()) };
        // SAFETY: rule 1: a closed queue gives the entry back.
        pushed.map_err(|Closed(item)| unsafe { Entry::from_raw(item) })?;
        if self.idle.call(worker) {
            self.unpark(worker);
        }
        Ok(())
    }

    pub(crate) fn inject_batch(&self, batch: Batch<Header>) {
        if let Err(Closed(batch)) = self.injector.push_batch(batch) {
            // Only a worker that was stuck past the deadline comes here.
            batch.for_each(|item| {
                // SAFETY: rule 1: a closed queue gives the entries back.
                unsafe { Entry::from_raw(item) }.refuse();
            });
        }
    }

    /// Notifies a sleeper, if there is one and no worker searches.
    #[inline]
    pub(crate) fn announce(&self) {
        if let Some(worker) = self.idle.announce() {
            self.unpark(worker);
        }
    }

    /// Posts the token of a claimed worker.
    pub(crate) fn unpark(&self, worker: usize) {
        if self.crew.remote(worker).parker.unpark() == Wakeup::Elsewhere
            && let Some(driver) = &self.driver
        {
            driver.ring();
        }
    }

    pub(crate) fn unpark_all(&self) {
        // Pairs with the fence in `Idle::publish`: a worker that is not seen parked sees the
        // phase that was set before.
        crate::sync::atomic::fence(Ordering::SeqCst);
        for worker in 0..self.crew.used_ids() {
            if self.idle.claim_worker(worker) {
                self.unpark(worker);
            }
        }
    }

    /// Whether `worker` would find anything in any source.
    pub(crate) fn has_work(&self, worker: usize) -> bool {
        if !self.injector.is_empty() || self.classes.any() {
            return true;
        }
        if !self.config.stealing {
            let own = self.crew.remote(worker);
            return !own.ring.is_empty() || !own.slot.is_empty();
        }
        // Workers of a pool that stops take no jobs.
        let jobs = !self.stop.is_stopping();
        self.crew.remotes().any(|remote| {
            !remote.ring.is_empty() || !remote.slot.is_empty() || (jobs && !remote.forks.is_empty())
        })
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    /// The pool this thread woke last. It keeps the pool's memory (not its threads) alive, so that
    /// a wake may still look for sleepers after its push, when the task may already be complete
    /// and the pool shut down. One clone per change of pool, not two shared counts per wake.
    static LAST_POOL: Cell<Option<Arc<Pool>>> = const { Cell::new(None) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static LAST_POOL: Cell<Option<Arc<Pool>>> = Cell::new(None);
}

/// # Safety
/// Rule 6: `pool` is the task's pool and `entry` has not been queued yet.
#[cold]
unsafe fn submit_from_outside(pool: *const Pool, entry: Entry) {
    // Taken out for the duration: a wake from within finds none and makes a reference of its own.
    // On a thread that is ending there is no place to keep one.
    let last = LAST_POOL.try_with(Cell::take).ok().flatten();
    let pool = match last {
        Some(last) if std::ptr::eq(&raw const *last, pool) => last,
        // SAFETY: rule 6: the pool waits for this task.
        _ => unsafe { retain_pool(pool) },
    };
    pool.inject(entry);
    let _ = LAST_POOL.try_with(|last| last.set(Some(pool)));
}

/// # Safety
/// `pool` is alive and was made by `Pool::start`, in an `Arc`.
unsafe fn retain_pool(pool: *const Pool) -> Arc<Pool> {
    // SAFETY: says the caller.
    unsafe {
        Arc::increment_strong_count(pool);
        Arc::from_raw(pool)
    }
}

//! How a worker leaves: because the pool ends, or has too many workers.

use super::Worker;
use crate::queue::Batch;
use crate::sched::stop::Phase;
use crate::task::Entry;

/// Local sets that tasks of this worker have forgotten, or keep in its thread-locals: their
/// coroutines unwind while the thread is still a worker of the pool on which they began.
fn finish_local_sets() {
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    crate::thread_end::finish();
}

impl Worker {
    /// The pool stops, or has too many workers. False: this one leaves.
    #[cold]
    pub(super) fn heed(&self) -> bool {
        if self.pool.stop.is_stopping() {
            let stays = self.stopping();
            if !stays {
                finish_local_sets();
                self.leave();
            }
            return stays;
        }
        if self.pool.config.current_thread {
            // The root has ended. The queues stay as they are.
            self.pool.stop.set_crowded(false);
            self.remote().pulse.set_busy(false);
            return false;
        }
        let leaves = self.pinned.alive.get() == 0 && self.pool.crew.may_leave(&self.pool);
        if leaves {
            finish_local_sets();
            self.retire();
        }
        !leaves
    }

    /// Leaves a pool that goes on. What is queued here goes to the injector.
    fn retire(&self) {
        let mut batch = Batch::default();
        while let Some(entry) = self.take_shared() {
            // SAFETY: rule 1: we own the entry and give it to the batch.
            unsafe { batch.push(entry.into_raw()) };
        }
        if !batch.is_empty() {
            self.pool.inject_batch(batch);
        }
        self.remote().pulse.set_busy(false);
        let is_deserted = self.pool.leave_idle_set(self.searching.replace(false));
        self.pool.stop.drained(self.index);
        // After the fence in `leave`, too.
        if is_deserted || self.pool.has_work(self.index) {
            self.pool.announce();
        }
    }

    /// The pool is ending. False: this worker leaves.
    #[cold]
    pub(crate) fn stopping(&self) -> bool {
        let phase = self.pool.stop.phase();
        if phase == Phase::Exiting || !self.pool.stop.may_look(self.index) {
            if self.searching.replace(false) {
                let _ = self.pool.idle.end_search();
            }
            return false;
        }
        if phase != self.phase.replace(phase) {
            self.shard.registry().walk(|task| {
                match phase {
                    Phase::Forced => task.cancel_by_force(),
                    _ => task.cancel(),
                }
                true
            });
        }
        true
    }

    /// The end of the thread. Queues are empty then, unless this worker was stuck in a poll past
    /// the deadline: what piled up meanwhile is dropped, so that its handles resolve after all.
    pub(super) fn leave(&self) {
        while let Some(entry) = self.take_any() {
            entry.refuse();
        }
    }

    /// Whatever is in a queue of this worker or of the pool.
    pub(crate) fn take_any(&self) -> Option<Entry> {
        self.take_local()
            .or_else(|| self.take_left_for_us())
            .or_else(|| self.take_injected())
            .or_else(|| self.take_leftovers())
    }

    /// A task that comes out of a queue while the pool stops is cancelled; a shielded one still
    /// gets its turn. False: it is too late even for that.
    #[cold]
    pub(super) fn begin_last_turn(&self, entry: &Entry) -> bool {
        let state = &entry.header().state;
        // HELD by us: both only mark the task.
        let _ = match self.phase.get() {
            Phase::Forced => state.cancel_by_force(),
            _ => state.cancel(),
        };
        self.pool.stop.may_begin(self.index)
    }
}

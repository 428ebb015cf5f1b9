//! Threads for what blocks: elastic, capped, retired when idle.
//!
//! They run closures (`spawn_blocking`) and give turns to the tasks of the io dispatcher, which
//! have a limit of their own: of the threads, so many at most are inside a task's turn. A coroutine
//! that has begun on one of them goes on there only, so each thread has an inbox, and stays while
//! it is needed.

mod config;
mod error;
mod snapshot;
mod state;
mod stuck_job;
mod thread;
mod turns;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::sync::{Condvar, Mutex, clock};
use windlass_core::task::{Job, JoinHandle, Options, TaskRef};
use windlass_core::tuning::GRACE_NS;

pub(crate) use self::config::Config;
pub use self::error::SpawnBlockingError;
pub use self::snapshot::BlockingSnapshot;
use self::state::{QueuedJob, State, Work};
pub use self::stuck_job::StuckJob;
use crate::handle::Handle;

#[derive(Debug)]
pub(crate) struct BlockingPool {
    config: Config,
    state: Mutex<State>,
    /// A job was queued, or the pool closes.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
}

/// The time `limit` from now; centuries are as good as for ever.
fn from_now(limit: Duration) -> u64 {
    clock::now().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

impl BlockingPool {
    pub(crate) fn new(config: Config) -> Arc<BlockingPool> {
        Arc::new(BlockingPool {
            config,
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            ended: Condvar::new(),
        })
    }

    /// Queues a closure, and starts a thread for it if none is free.
    pub(crate) fn spawn<T, F>(
        self: &Arc<Self>,
        runtime: &Handle,
        f: F,
        options: Options,
        start_within: Option<Duration>,
    ) -> Result<JoinHandle<T>, SpawnBlockingError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let start_by = start_within.map(from_now);
        let mut state = self.state.lock();
        state.submitted += 1;
        let (job, handle) = Job::new(f, state.submitted, options);
        if state.closed {
            drop(state);
            // Dropping the job resolves the handle with `Cancelled`.
            drop(job);
            return Ok(handle);
        }
        let work = Work::Job(job);
        state.queue.push_back(QueuedJob { work, start_by });
        if let Err(error) = self.find_thread(&mut state, runtime) {
            // No thread would ever run it.
            let refused = state.queue.pop_back();
            drop(state);
            drop(refused);
            return Err(SpawnBlockingError::NoThread(error));
        }
        Ok(handle)
    }

    /// Refuses new jobs and cancels tasks. Jobs that no thread runs or was woken for are dropped.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        // A job resolves with its value if a thread was started or woken for it, as in tokio.
        let mut begun = state.starting + state.notified;
        let (kept, jobs): (VecDeque<QueuedJob>, VecDeque<QueuedJob>) =
            std::mem::take(&mut state.queue)
                .into_iter()
                .partition(|queued| {
                    let is_kept = begun > 0 || matches!(queued.work, Work::Turn(_));
                    begun = begun.saturating_sub(1);
                    is_kept
                });
        state.queue = kept;
        let tasks: Vec<TaskRef> = state.tasks.values().cloned().collect();
        drop(state);
        self.work.notify_all();
        drop(jobs);
        // Those that are idle are queued by this, and a thread drops or unwinds them.
        tasks.iter().for_each(TaskRef::cancel);
    }

    /// Waits for the threads; names the jobs that do not end within `limit`.
    pub(crate) fn join(&self, limit: Duration) -> Vec<StuckJob> {
        if !self.wait_for_threads(from_now(limit)) {
            let state = self.state.lock();
            let tasks: Vec<TaskRef> = state.tasks.values().cloned().collect();
            drop(state);
            // Shields no longer count.
            tasks.iter().for_each(TaskRef::cancel_by_force);
            self.wait_for_threads(clock::now() + GRACE_NS);
        }
        let state = self.state.lock();
        state.running.values().map(StuckJob::of).collect()
    }

    /// True: all have ended.
    fn wait_for_threads(&self, deadline: u64) -> bool {
        let mut state = self.state.lock();
        while state.threads + state.ending > 0 {
            let now = clock::now();
            if now >= deadline {
                return false;
            }
            state = self
                .ended
                .wait_for(state, Duration::from_nanos(deadline - now))
                .0;
        }
        true
    }

    pub(crate) fn snapshot(&self) -> BlockingSnapshot {
        let state = self.state.lock();
        BlockingSnapshot {
            threads: state.threads,
            idle: state.idle,
            queued: state.queue.len(),
            submitted: state.submitted,
            expired: state.expired,
            io_tasks: state.tasks.len(),
            io_turns: state.turns_had,
        }
    }
}

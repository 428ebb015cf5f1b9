//! The end of a pool.

use std::time::Duration;

use super::Pool;
use crate::context;
use crate::observe::{LeakedTask, StuckWorker};
use crate::sched::stop::Phase;
use crate::sync::{UnfinishedThread, clock, thread};
use crate::tuning;

/// The report of a shutdown.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StopReport {
    /// Workers that were still inside a poll at the deadline; their threads are detached.
    pub stuck: Vec<StuckWorker>,
    /// Tasks that were suspended and could not be dropped, because no worker was left to do it.
    pub leaked_tasks: usize,
    /// The first of them, at most [`tuning::NAMED_LEAKS`].
    pub leaked: Vec<LeakedTask>,
    /// Threads that did not end, although their worker had left; they are detached.
    pub unfinished_threads: Vec<UnfinishedThread>,
}

impl StopReport {
    /// Adds what another pool reports.
    pub fn merge(&mut self, other: StopReport) {
        self.stuck.extend(other.stuck);
        self.leaked_tasks += other.leaked_tasks;
        self.leaked.extend(other.leaked);
        self.unfinished_threads.extend(other.unfinished_threads);
    }
}

impl Pool {
    /// True from the start of the shutdown on.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_stopping()
    }

    /// True on one of this pool's workers.
    pub fn is_current(&self) -> bool {
        context::with_worker(|worker| {
            worker.is_some_and(|worker| std::ptr::eq(&raw const *worker.pool, self))
        })
    }

    /// Cancels and drops every task and joins the threads. Shielded sections may run on until
    /// `limit`; then they are dropped too, and threads that stay inside one poll for another 100 ms
    /// are detached and named.
    ///
    /// Must not be called on one of the pool's own workers, which would wait for itself.
    pub fn shutdown(&self, limit: Option<Duration>) -> StopReport {
        match self.stop.advance(Phase::Stopping) {
            true => self.end(limit),
            false => StopReport::default(),
        }
    }

    /// The shutdown of a pool that is stopping.
    pub(super) fn end(&self, limit: Option<Duration>) -> StopReport {
        let mut report = StopReport::default();
        self.cancel_where_nobody_is();
        self.unpark_all();
        let deadline = limit.map(|limit| after(clock::now(), limit));
        let nothing_left = || self.close_if_empty();
        if !self.stop.wait(deadline, nothing_left) {
            self.stop.advance(Phase::Forced);
            self.unpark_all();
            self.force();
            report.stuck = self.wait_for_all_but_stuck(nothing_left);
            self.stop.shut_gates();
            report.leaked_tasks = self
                .crew
                .remotes()
                .map(|remote| remote.registry.len())
                .sum();
            let leaked = self.suspended(tuning::NAMED_LEAKS);
            report.leaked = leaked.iter().map(LeakedTask::of).collect();
        }
        self.stop.advance(Phase::Exiting);
        self.unpark_all();
        self.join_threads(&mut report, deadline);
        report
    }

    /// Ends the queues if nothing is in them and no task is suspended that could come.
    pub(crate) fn close_if_empty(&self) -> bool {
        self.crew.remotes().all(|remote| remote.registry.is_empty())
            && self.injector.close_if_empty()
            && self.classes.close_if_empty()
    }

    /// Past the deadline: waits as long as a worker still makes progress, and names those who have
    /// been inside one poll for a whole grace period.
    fn wait_for_all_but_stuck(&self, nothing_left: impl Fn() -> bool) -> Vec<StuckWorker> {
        let give_up = clock::now() + tuning::FORCE_LIMIT_NS;
        loop {
            let before: Vec<u64> = self
                .crew
                .remotes()
                .map(|remote| remote.pulse.polls())
                .collect();
            let grace = clock::now() + tuning::GRACE_NS;
            if self.stop.wait(Some(grace), &nothing_left) {
                return Vec::new();
            }
            let hangs = |index: &usize| {
                let pulse = &self.crew.remote(*index).pulse;
                pulse.is_busy() && before.get(*index) == Some(&pulse.polls())
            };
            let stuck: Vec<usize> = self.stop.in_turn().into_iter().filter(hangs).collect();
            if stuck == self.stop.not_drained() || clock::now() > give_up {
                return stuck
                    .into_iter()
                    .map(|worker| self.describe_stuck(worker))
                    .collect();
            }
        }
    }

    /// Also reaches the shards of workers that cannot do it themselves.
    fn force(&self) {
        for remote in self.crew.remotes() {
            remote.registry.walk(|task| {
                task.cancel_by_force();
                true
            });
        }
    }

    /// Tasks that were registered by workers that have left since, or are about to. Those of the
    /// others are cancelled by themselves, and it does not matter who is first.
    fn cancel_where_nobody_is(&self) {
        for remote in self.crew.remotes() {
            remote.registry.walk(|task| {
                task.cancel();
                true
            });
        }
    }

    fn describe_stuck(&self, worker: usize) -> StuckWorker {
        let beat = self.crew.remote(worker).pulse.read();
        StuckWorker {
            worker,
            task: beat.id,
            name: beat.name,
            location: beat.location,
        }
    }

    /// Waits for the threads until the deadline, or for a grace period if that is later:
    /// destructors of thread-locals, and the hook of the watchdog, are code of others.
    fn join_threads(&self, report: &mut StopReport, deadline: Option<u64>) {
        self.watchdog.stop();
        let deadline = deadline.map(|deadline| deadline.max(clock::now() + tuning::GRACE_NS));
        let is_stuck = |index| report.stuck.iter().any(|stuck| stuck.worker == index);
        let threads = self.crew.close().into_iter().enumerate();
        let workers: Vec<_> = threads
            .filter(|(index, _)| !is_stuck(*index))
            .filter_map(|(_, thread)| thread)
            .collect();
        let watchdog = self.watchdog_thread.lock().take();
        for thread in workers.into_iter().chain(watchdog) {
            // A worker catches the panics of its tasks; its own would have aborted.
            if let Err(unfinished) = thread::join_by(thread, deadline) {
                report.unfinished_threads.push(unfinished);
            }
        }
    }
}

fn after(now: u64, limit: Duration) -> u64 {
    now.saturating_add(limit.as_nanos().min(u64::MAX as u128) as u64)
}

//! Looking inside a pool.

use std::time::Duration;

use super::Pool;
use crate::observe::{Event, PoolSnapshot, Recording, WorkerSnapshot, WorkerState};
use crate::sync::atomic::Ordering;
use crate::task::{Class, block_cache};

impl Pool {
    /// What the flight recorders record from now on (each worker notices within a tick).
    pub fn set_recording(&self, recording: Recording) {
        self.recording.store(recording as u8, Ordering::Relaxed);
    }

    /// What the flight recorders record.
    pub fn recording(&self) -> Recording {
        Recording::from_u8(self.recording.load(Ordering::Relaxed))
    }

    /// The events that the flight recorders still hold, oldest first.
    pub fn events(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.watchdog.slow_polls().1;
        for (index, remote) in self.crew.remotes().enumerate() {
            events.extend(remote.recorder.read(index));
        }
        events.sort_by_key(|event| event.at);
        events
    }

    /// Polls that the watchdog found to be slow.
    pub fn slow_polls(&self) -> u64 {
        self.watchdog.slow_polls().0
    }

    /// Calls `visit` with a reference to each suspended task from a position on, until it returns
    /// false. Returns the position behind the last task that was visited; none after the last.
    ///
    /// A position is a shard and a slot of its table, so it takes no time to go on there.
    pub fn visit_suspended(
        &self,
        (first_shard, first_slot): (usize, usize),
        mut visit: impl FnMut(crate::task::TaskRef) -> bool,
    ) -> Option<(usize, usize)> {
        for (shard, remote) in self.crew.remotes().enumerate().skip(first_shard) {
            let slot = if shard == first_shard { first_slot } else { 0 };
            if let Some(next) = remote.registry.walk_from(slot, &mut visit) {
                return Some((shard, next));
            }
        }
        None
    }

    /// Returns how many tasks are suspended.
    pub fn suspended_len(&self) -> usize {
        let remotes = self.crew.remotes();
        remotes.map(|remote| remote.registry.len()).sum()
    }

    /// References to suspended tasks, `most` at most: for dumps.
    pub fn suspended(&self, most: usize) -> Vec<crate::task::TaskRef> {
        let mut tasks = Vec::new();
        for remote in self.crew.remotes() {
            if tasks.len() < most {
                remote.registry.walk(|task| {
                    tasks.push(task);
                    tasks.len() < most
                });
            }
        }
        tasks
    }

    /// Returns everything the pool counts, as plain data. Blocks no worker.
    pub fn snapshot(&self) -> PoolSnapshot {
        let counts = self.idle.counts();
        PoolSnapshot {
            workers: self.worker_snapshots(),
            injector_len: self.injector.len(),
            inject_queue_overflows: self.outside.refused.load(Ordering::Relaxed),
            tasks_submitted_outside: self.outside.submitted.load(Ordering::Relaxed),
            class_len: [Class::High, Class::Low, Class::Background]
                .map(|class| self.classes.len(class)),
            searching: counts.searching,
            unparked: counts.unparked,
            suspended_tasks: self.suspended_len(),
            blocked_without_spare: self.crew.not_replaced(),
            tasks_rescued: self.watchdog.rescued(),
            driver_rescues: self.watchdog.driver_rescues(),
            block_depot_bytes: block_cache().depot_bytes,
        }
    }

    fn worker_snapshots(&self) -> Vec<WorkerSnapshot> {
        let taken = self.crew.taken();
        (0..self.crew.used_ids())
            .map(|worker_id| {
                let mut snapshot = self.worker_snapshot(worker_id);
                if !taken.contains(&worker_id) {
                    snapshot.state = WorkerState::Gone;
                }
                snapshot
            })
            .collect()
    }

    fn worker_snapshot(&self, index: usize) -> WorkerSnapshot {
        let remote = self.crew.remote(index);
        let beat = remote.pulse.read();
        let counters = &remote.counters;
        let longest = counters
            .longest_ns
            .get()
            .max(remote.stalled_ns.load(Ordering::Relaxed));
        let mean = counters
            .run_ns
            .get()
            .checked_div(counters.run_polls.get())
            .unwrap_or(0);
        WorkerSnapshot {
            index,
            state: match (beat.busy, beat.parked) {
                (_, true) => WorkerState::Parked,
                (true, false) => WorkerState::Running,
                (false, false) => WorkerState::Searching,
            },
            ring_len: remote.ring.len(),
            slot_full: !remote.slot.is_empty(),
            task: beat.id,
            task_location: beat.location,
            task_name: beat.name,
            tasks_submitted: counters.submitted.get(),
            tasks_completed: counters.completed.get(),
            polls: beat.polls,
            steal_attempts: counters.steals_tried.get(),
            steal_successes: counters.steals_made.get(),
            tasks_stolen: counters.tasks_stolen.get(),
            forks_len: remote.forks.len(),
            forks_stolen: counters.forks_stolen.get(),
            slot_polls: counters.slot_polls.get(),
            overflows: counters.overflows.get(),
            park_events: counters.parks.get(),
            unpark_events: counters.unparks.get(),
            searches: counters.searches.get(),
            budget_exhaustions: counters.budget_exhaustions.get(),
            aging_interventions: counters.aged.get(),
            panics: counters.panics.get(),
            cancels: counters.cancels.get(),
            pinned_tasks: counters.pinned.get(),
            max_run: Duration::from_nanos(longest),
            avg_run: Duration::from_nanos(mean),
            injector_interval: remote.interval.load(Ordering::Relaxed),
            events_recorded: remote.recorder.recorded(),
        }
    }
}

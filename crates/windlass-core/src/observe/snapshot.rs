//! Plain data about a pool.

use std::panic::Location;
use std::time::Duration;

use crate::task::TaskRef;

/// A pool at one moment. Numbers of different workers are not from the same instant.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// The workers of the pool, by worker id.
    pub workers: Vec<WorkerSnapshot>,
    /// Times that a worker blocked its thread and no other could take its place.
    pub blocked_without_spare: u64,
    /// Tasks in the injector.
    pub injector_len: usize,
    /// Spawns refused by `try_spawn` because the injector was full.
    pub inject_queue_overflows: u64,
    /// Tasks submitted from outside the pool's workers.
    pub tasks_submitted_outside: u64,
    /// Tasks queued per class: high, low, background.
    pub class_len: [usize; 3],
    /// Workers that look for work.
    pub searching: usize,
    /// Workers that are awake.
    pub unparked: usize,
    /// Tasks that have been idle at least once and have not ended.
    pub suspended_tasks: usize,
    /// Tasks that the watchdog moved away from workers that did not come back to them, while all
    /// others were awake and had not stolen them.
    pub tasks_rescued: u64,
    /// Times that every worker slept elsewhere and the watchdog had to send one to the driver. Not
    /// zero: a bug of the engine, which would have lost timers and sockets.
    pub driver_rescues: u64,
    /// Bytes of free task blocks in the shared depot.
    pub block_depot_bytes: usize,
}

/// What a worker is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkerState {
    /// The worker runs tasks.
    #[default]
    Running,
    /// The worker looks for work.
    Searching,
    /// The worker sleeps until it is notified.
    Parked,
    /// The worker has left the pool; what it has done still counts.
    Gone,
}

/// One worker's numbers since it started.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct WorkerSnapshot {
    /// The id of the worker.
    pub index: usize,
    /// What it is doing.
    pub state: WorkerState,
    /// Tasks in its ring.
    pub ring_len: usize,
    /// Whether its slot holds a task.
    pub slot_full: bool,
    /// The id of the task it is in, or was in last.
    pub task: u64,
    /// Where that task was spawned.
    pub task_location: Option<&'static Location<'static>>,
    /// That task's name, cut at 48 bytes.
    pub task_name: Option<String>,
    /// Tasks spawned on this worker.
    pub tasks_submitted: u64,
    /// Tasks that ended on this worker.
    pub tasks_completed: u64,
    /// Times that this worker resumed a body.
    pub polls: u64,
    /// Victims looked at.
    pub steal_attempts: u64,
    /// Steals that got something.
    pub steal_successes: u64,
    /// Tasks taken in them.
    pub tasks_stolen: u64,
    /// Jobs of its fork-joins that others may take.
    pub forks_len: usize,
    /// Jobs of fork-joins that it took from other workers.
    pub forks_stolen: u64,
    /// Polls of tasks that came from the slot.
    pub slot_polls: u64,
    /// Times half the ring moved to the injector.
    pub overflows: u64,
    /// Times it went to sleep.
    pub park_events: u64,
    /// Times it woke up.
    pub unpark_events: u64,
    /// Times it began to search.
    pub searches: u64,
    /// Polls that used up their cooperative budget.
    pub budget_exhaustions: u64,
    /// Low and background tasks that ran because of their age.
    pub aging_interventions: u64,
    /// Tasks that panicked.
    pub panics: u64,
    /// Tasks whose body was dropped because they were cancelled.
    pub cancels: u64,
    /// Tasks that have begun here and stay here: coroutines.
    pub pinned_tasks: u64,
    /// The longest poll that was measured (sampled polls, and all that the watchdog saw).
    pub max_run: Duration,
    /// The mean length of a poll.
    pub avg_run: Duration,
    /// The current injector interval, in polls.
    pub injector_interval: u32,
    /// Events this worker's flight recorder has written.
    pub events_recorded: u64,
}

/// A worker that has been in one poll for too long.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stall {
    /// The id of the worker that is stalled.
    pub worker: usize,
    /// For how long at least.
    pub duration: Duration,
    /// The task's id.
    pub task: u64,
    /// The task's name, cut at 48 bytes.
    pub name: Option<String>,
    /// Where the task was spawned.
    pub location: Option<&'static Location<'static>>,
    /// Tasks that still wait in the worker's own queue; others have been given to other workers.
    pub queued_behind: usize,
}

/// A worker that did not stop in time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StuckWorker {
    /// The id of the worker that did not end.
    pub worker: usize,
    /// The task it is in.
    pub task: u64,
    /// The task's name, cut at 48 bytes.
    pub name: Option<String>,
    /// Where the task was spawned.
    pub location: Option<&'static Location<'static>>,
}

impl std::fmt::Display for Stall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "worker {} has been in one poll for {:?}: ",
            self.worker, self.duration
        )?;
        describe(f, self.name.as_deref(), self.location)?;
        write!(f, ", {} queued behind it", self.queued_behind)
    }
}

impl std::fmt::Display for StuckWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "worker {} did not return from ", self.worker)?;
        describe(f, self.name.as_deref(), self.location)
    }
}

/// A suspended task that could not be dropped: no worker was left that could do it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LeakedTask {
    /// The number of the task.
    pub task: u64,
    /// The name of the task, if it has one.
    pub name: Option<String>,
    /// Where it was spawned.
    pub location: &'static Location<'static>,
}

impl LeakedTask {
    pub(crate) fn of(task: &TaskRef) -> LeakedTask {
        let header = task.header();
        let meta = header.meta();
        LeakedTask {
            task: header.id().get(),
            name: meta.name().map(|name| name.to_string()),
            location: meta.location(),
        }
    }
}

impl std::fmt::Display for LeakedTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        describe(f, self.name.as_deref(), Some(self.location))?;
        f.write_str(", is suspended and could not be dropped")
    }
}

fn describe(
    f: &mut std::fmt::Formatter<'_>,
    name: Option<&str>,
    location: Option<&'static Location<'static>>,
) -> std::fmt::Result {
    write!(f, "task {}", name.unwrap_or("(unnamed)"))?;
    match location {
        Some(location) => write!(f, ", spawned at {location}"),
        None => Ok(()),
    }
}

//! What a pool is made from, and what its threads call.

use std::time::Duration;

use crate::observe::{Event, Recording, Stall};
use crate::sync::{Arc, entropy};
use crate::tuning;

/// Called with a worker's index when its thread starts or ends.
pub type ThreadHook = Arc<dyn Fn(usize) + Send + Sync>;
/// Called by the watchdog when a worker has been in one poll for too long.
pub type StallHook = Arc<dyn Fn(&Stall) + Send + Sync>;
/// Called on a worker with its new events, between polls and before it sleeps; the number is how
/// many were overwritten before they could be reported.
pub type EventHook = Arc<dyn Fn(&[Event], u64) + Send + Sync>;

/// How long a search goes on before the worker sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spin {
    /// Rounds that only pause the core.
    pub tight: u32,
    /// Rounds after which the search ends; those past `tight` give the core away.
    pub yields: u32,
}

impl Default for Spin {
    fn default() -> Self {
        Spin {
            tight: tuning::SPIN_TIGHT,
            yields: tuning::SPIN_YIELD,
        }
    }
}

/// What a pool is made from. The runtime's builder validates it.
#[derive(Clone)]
pub struct Config {
    /// Worker threads, at least 1 and at most 65,535.
    pub workers: usize,
    /// The most workers that the pool can be resized to; at least `workers`.
    pub max_workers: usize,
    /// Whether workers steal from each other.
    pub stealing: bool,
    /// Tasks take their turns in the order in which they were spawned and woken, by any thread.
    /// For pools of one worker.
    pub in_order: bool,
    /// Victims probed per search round.
    pub victims: usize,
    /// Tasks the injector holds before `try_spawn` is refused.
    pub injector_capacity: usize,
    /// Prefix of the thread names.
    pub name: String,
    /// Stack size of the worker threads; 0 for the platform's default.
    pub stack_size: usize,
    /// How long a search goes on.
    pub spin: Spin,
    /// How soon something runs against how much runs in all.
    pub policy: tuning::Policy,
    /// Cooperative operations in one poll before it has to give way.
    pub run_budget: u8,
    /// Seeds the victim selection.
    pub seed: u64,
    /// What the flight recorder records.
    pub recording: Recording,
    /// The pool belongs to a simulation: every task has a number, so that traces can be compared.
    pub simulated: bool,
    /// The pool has one worker and no thread: whoever waits for a future runs the tasks meanwhile
    /// (`Pool::run_until`).
    pub current_thread: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            workers: 1,
            max_workers: 1,
            stealing: true,
            in_order: false,
            victims: tuning::VICTIMS_PER_SEARCH,
            injector_capacity: tuning::INJECTOR_CAPACITY,
            name: "windlass".into(),
            stack_size: 0,
            spin: Spin::default(),
            policy: tuning::Policy::THROUGHPUT,
            run_budget: tuning::BUDGET_PER_POLL,
            seed: entropy(),
            recording: Recording::default(),
            simulated: false,
            current_thread: false,
        }
    }
}

impl Config {
    /// Workers there can be at once: the most that are wanted, and those that take the place of
    /// others while these block.
    pub(crate) fn worker_capacity(&self) -> usize {
        if self.simulated || self.current_thread {
            return 1;
        }
        let most = self.max_workers.max(self.workers);
        (most + most.max(tuning::SPARE_WORKERS)).min(usize::from(u16::MAX))
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("workers", &self.workers)
            .field("name", &self.name)
            .finish()
    }
}

/// What the pool's threads call; kept by the threads alone, so that freeing a pool runs no user
/// code.
#[derive(Clone, Default)]
pub struct Hooks {
    /// Called on each worker thread before it runs anything.
    pub on_start: Option<ThreadHook>,
    /// Called on each worker thread after it ran everything.
    pub on_stop: Option<ThreadHook>,
    /// Called by the watchdog.
    pub on_stall: Option<StallHook>,
    /// Called by each worker with what its flight recorder has recorded, which is everything then.
    pub on_events: Option<EventHook>,
    /// When a poll counts as stalled; none: stalls are not looked for.
    pub stall_threshold: Option<Duration>,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooks")
            .field("stall_threshold", &self.stall_threshold)
            .finish_non_exhaustive()
    }
}

//! A pool on one thread in a simulated world: the same tasks, queues and wakes, and a seeded choice
//! of what runs next.
//!
//! Everything that is ready waits in one list, and the world's dice pick from it. Time stands still
//! while anything is ready, and then jumps to the next thing that happens outside. A task that
//! never waits would hold it for ever: after a hundred thousand steps at one moment each further
//! one takes a microsecond. Each step goes into the trace, whose hash is the same for the same
//! program and seed.

use std::collections::VecDeque;
use std::time::Duration;

use crate::context::{self, RunsTasks};
use crate::hash::Fnv;
use crate::sched::pool::{Config, Pool, StopReport};
use crate::sched::stop::Phase;
use crate::sched::worker::Worker;
use crate::sync::{Arc, World};
use crate::task::{Class, Entry};

/// Steps that the trace keeps for people; its hash covers all.
const STEPS_KEPT: usize = 256;
/// One pick in so many ignores the classes, as an aged task would.
const IGNORE_CLASS_ONE_IN: usize = 64;
/// Steps at one moment after which each takes time.
const FREE_STEPS: u64 = 100_000;
const STEP_TAKES_NS: u64 = 1_000;
/// Steps with nothing to happen outside after which the program is taken to run in circles.
const STEPS_IN_CIRCLES: u64 = 10_000_000;

/// The future that the simulation runs for.
pub trait Root {
    /// Whether it wants to be polled.
    fn is_woken(&self) -> bool;
    /// Polls it. True: it has ended.
    fn poll(&mut self) -> bool;
}

/// What happens besides the tasks: timers, networks, helper threads.
pub trait Outside {
    /// When the next thing happens by itself; none: never.
    fn next(&self) -> Option<u64>;
    /// Everything that is due at `now` happens.
    fn happen(&self, now: u64);
    /// How many things could go on right now.
    fn runnable(&self) -> usize;
    /// One of them goes on, until it waits again.
    fn go_on(&self, which: usize);
}

/// One step of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A task had its turn.
    Task {
        /// The simulated time of the turn.
        at: Duration,
        /// The number of the task.
        id: u64,
    },
    /// The root future was polled.
    Root {
        /// The simulated time of the step.
        at: Duration,
    },
    /// A helper thread went on.
    Helper {
        /// The simulated time of the step.
        at: Duration,
        /// The index of the helper thread.
        index: usize,
    },
    /// The simulated time moved on.
    Time {
        /// The simulated time afterwards.
        to: Duration,
    },
}

/// What has happened so far.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Number of steps that were taken.
    pub steps: u64,
    /// A hash over all of them.
    pub hash: u64,
    /// The latest ones.
    pub latest: VecDeque<Step>,
}

impl Trace {
    fn record(&mut self, step: Step) {
        let (kind, a, b) = match step {
            Step::Task { at, id } => (1, at.as_nanos() as u64, id),
            Step::Root { at } => (2, at.as_nanos() as u64, 0),
            Step::Helper { at, index } => (3, at.as_nanos() as u64, index as u64),
            Step::Time { to } => (4, to.as_nanos() as u64, 0),
        };
        let parts = [kind, a, b].map(u64::to_le_bytes);
        self.hash = Fnv::from_hash(self.hash).with(parts.as_flattened()).get();
        self.steps += 1;
        if self.latest.len() == STEPS_KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back(step);
    }
}

/// The root waits, and nothing can ever wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stuck {
    /// Nothing is ready and nothing will happen.
    Deadlock,
    /// Something is always ready, but time does not pass.
    Livelock,
}

/// A pool without threads, run by the caller of [`run`](Simulation::run).
#[derive(Debug)]
pub struct Simulation {
    worker: Worker,
    ready: Vec<Entry>,
    /// How many of them are not of the normal class.
    unusual: usize,
    world: Arc<World>,
    trace: Trace,
}

impl Simulation {
    /// A simulation of one worker in `world`.
    pub fn new(config: Config, world: Arc<World>) -> Simulation {
        let config = Config {
            workers: 1,
            simulated: true,
            ..config
        };
        let pool = Pool::without_threads(config, None);
        Simulation {
            worker: Worker::new(pool, 0, None),
            ready: Vec::new(),
            unusual: 0,
            world,
            trace: Trace {
                hash: Fnv::new().get(),
                ..Trace::default()
            },
        }
    }

    /// The pool: spawns and wakes go there.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.worker.pool
    }

    /// What has happened so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Runs everything until `root` has ended.
    pub fn run(&mut self, root: &mut dyn Root, outside: &dyn Outside) -> Result<(), Stuck> {
        let _runs_tasks = RunsTasks::begin();
        let mut at_this_moment = 0;
        loop {
            self.gather();
            let (tasks, woken) = (self.ready.len(), usize::from(root.is_woken()));
            let total = tasks + woken + outside.runnable();
            if total == 0 {
                let Some(next) = outside.next() else {
                    return Err(Stuck::Deadlock);
                };
                self.pass_time(next, outside);
                at_this_moment = 0;
                continue;
            }
            at_this_moment += 1;
            if at_this_moment > FREE_STEPS {
                self.creep(outside);
            }
            if at_this_moment > STEPS_IN_CIRCLES && outside.next().is_none() {
                return Err(Stuck::Livelock);
            }
            let pick = self.world.below(total);
            if pick < tasks {
                self.run_task(pick);
            } else if pick < tasks + woken {
                self.trace.record(Step::Root { at: self.at() });
                if context::enter_worker(&self.worker, || root.poll()) {
                    return Ok(());
                }
            } else {
                self.run_helper(pick - tasks - woken, outside);
            }
        }
    }

    /// Ends the pool: every task is dropped; shielded sections may go on until `limit` of virtual
    /// time.
    pub fn shutdown(&mut self, limit: Duration, outside: &dyn Outside) -> StopReport {
        let _runs_tasks = RunsTasks::begin();
        let stop = &self.worker.pool.stop;
        if !stop.advance(Phase::Stopping) {
            return StopReport::default();
        }
        let deadline = self.world.now().saturating_add(limit.as_nanos() as u64);
        let mut report = StopReport::default();
        loop {
            context::enter_worker(&self.worker, || self.worker.stopping());
            self.gather();
            if !self.ready.is_empty() {
                let pick = self.world.below(self.ready.len());
                self.run_task(pick);
                continue;
            }
            let runnable = outside.runnable();
            if runnable > 0 {
                let pick = self.world.below(runnable);
                self.run_helper(pick, outside);
                continue;
            }
            let pool = &self.worker.pool;
            if pool.close_if_empty() {
                break;
            }
            match outside.next() {
                Some(next) if next <= deadline => self.pass_time(next, outside),
                _ if pool.stop.advance(Phase::Forced) => {}
                _ => {
                    report.leaked_tasks = pool.suspended(usize::MAX).len();
                    break;
                }
            }
        }
        self.worker.pool.stop.advance(Phase::Exiting);
        report
    }

    fn at(&self) -> Duration {
        Duration::from_nanos(self.world.now())
    }

    /// A little time passes although something is ready, but nothing is passed over.
    fn creep(&mut self, outside: &dyn Outside) {
        let now = self.world.now() + STEP_TAKES_NS;
        match outside.next() {
            Some(next) if next <= now => self.pass_time(next, outside),
            _ => self.world.advance_to(now),
        }
    }

    fn pass_time(&mut self, next: u64, outside: &dyn Outside) {
        let now = next.max(self.world.now());
        self.world.advance_to(now);
        self.trace.record(Step::Time { to: self.at() });
        context::enter_worker(&self.worker, || outside.happen(now));
    }

    /// Takes everything that is ready out of the queues.
    fn gather(&mut self) {
        let worker = &self.worker;
        for entry in std::iter::from_fn(|| worker.take_any()) {
            self.unusual += usize::from(is_unusual(&entry));
            self.ready.push(entry);
        }
    }

    fn run_task(&mut self, pick: usize) {
        let entry = self.ready.swap_remove(self.respecting_class(pick));
        self.unusual -= usize::from(is_unusual(&entry));
        let id = entry.header().id().get();
        let node = entry.header().meta().node();
        self.trace.record(Step::Task { at: self.at(), id });
        self.world.at_node(node, || {
            context::enter_worker(&self.worker, || self.worker.turn(entry));
        });
    }

    /// The pick, or a task of a better class if there is one.
    fn respecting_class(&self, pick: usize) -> usize {
        if self.unusual == 0 {
            return pick;
        }
        let rank = |index: usize| match self.ready[index].header().state().class() {
            Class::High => 0,
            Class::Normal => 1,
            Class::Low => 2,
            Class::Background => 3,
        };
        let best = (0..self.ready.len()).map(rank).min().unwrap_or(1);
        if rank(pick) == best || self.world.below(IGNORE_CLASS_ONE_IN) == 0 {
            return pick;
        }
        let candidates: Vec<usize> = (0..self.ready.len())
            .filter(|index| rank(*index) == best)
            .collect();
        candidates[self.world.below(candidates.len())]
    }

    fn run_helper(&mut self, index: usize, outside: &dyn Outside) {
        let at = self.at();
        self.trace.record(Step::Helper { at, index });
        outside.go_on(index);
    }
}

fn is_unusual(entry: &Entry) -> bool {
    entry.header().state().class() != Class::Normal
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // After a shutdown there are none; without one they are dropped like refused tasks.
        self.ready.drain(..).for_each(Entry::refuse);
    }
}

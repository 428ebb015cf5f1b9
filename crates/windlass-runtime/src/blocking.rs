//! Threads for closures that block: elastic, capped, retired when idle.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::sync::{Condvar, Mutex, clock, thread};
use windlass_core::task::{Job, JoinHandle, Options, TaskRef};

use crate::handle::Handle;

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) stack_size: usize,
    pub(crate) name: String,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_threads: 512,
            keep_alive: Duration::from_secs(10),
            stack_size: 0,
            name: "windlass-blocking".into(),
        }
    }
}

/// The blocking pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BlockingSnapshot {
    /// Threads.
    pub threads: usize,
    /// Threads without a job.
    pub idle: usize,
    /// Jobs that wait for a thread.
    pub queued: usize,
    /// Jobs ever submitted.
    pub submitted: u64,
    /// Jobs that were not run because they waited past their deadline.
    pub expired: u64,
}

/// A blocking closure that did not end in time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StuckJob {
    /// Its name.
    pub name: Option<String>,
    /// Where it was spawned.
    pub location: &'static Location<'static>,
}

impl StuckJob {
    pub(crate) fn of(task: &TaskRef) -> StuckJob {
        let meta = task.header().meta();
        StuckJob {
            name: meta.name().map(|name| name.to_string()),
            location: meta.location(),
        }
    }
}

impl fmt::Display for StuckJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("(unnamed)");
        write!(
            f,
            "blocking job {name}, spawned at {}, did not return",
            self.location
        )
    }
}

/// A closure could not be handed to a blocking thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnBlockingError {
    /// There is no blocking thread, and the operating system refused to start one.
    NoThread(io::Error),
}

impl fmt::Display for SpawnBlockingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpawnBlockingError::NoThread(error) = self;
        write!(
            f,
            "no blocking thread could be started ({error}); lower max_blocking_threads or the \
             stack size, or raise the process's limits"
        )
    }
}

impl std::error::Error for SpawnBlockingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let SpawnBlockingError::NoThread(error) = self;
        Some(error)
    }
}

#[derive(Debug)]
pub(crate) struct BlockingPool {
    config: Config,
    state: Mutex<State>,
    /// A job was queued, or the pool closes.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Queued>,
    threads: usize,
    idle: usize,
    /// Idle threads that have been told and not yet woken: they are spoken for.
    told: usize,
    started: u64,
    submitted: u64,
    expired: u64,
    closed: bool,
    running: HashMap<u64, TaskRef>,
}

#[derive(Debug)]
struct Queued {
    job: Job,
    start_by: Option<u64>,
}

/// The time `limit` from now; centuries are as good as for ever.
fn from_now(limit: Duration) -> u64 {
    clock::now().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

thread_local! {
    /// The pool whose thread this is.
    static OWN: Cell<*const BlockingPool> = const { Cell::new(std::ptr::null()) };
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
        state.queue.push_back(Queued { job, start_by });
        if state.idle > state.told {
            state.told += 1;
            self.work.notify_one();
            return Ok(handle);
        }
        if state.threads < self.config.max_threads
            && let Err(error) = self.start_thread(&mut state, runtime)
            && state.threads == 0
        {
            // Nobody would ever run it.
            let refused = state.queue.pop_back();
            drop(state);
            drop(refused);
            return Err(SpawnBlockingError::NoThread(error));
        }
        Ok(handle)
    }

    fn start_thread(self: &Arc<Self>, state: &mut State, runtime: &Handle) -> io::Result<()> {
        let number = state.started;
        let name = format!("{}-{number}", self.config.name);
        let (pool, runtime) = (self.clone(), runtime.clone());
        thread::spawn(name, self.config.stack_size, move || {
            OWN.with(|own| own.set(Arc::as_ptr(&pool)));
            let entered = runtime.enter();
            drop(runtime);
            pool.run(number);
            drop(entered);
            pool.leave();
        })?;
        state.started += 1;
        state.threads += 1;
        Ok(())
    }

    /// A thread's life: jobs, then a wait for more, then the end.
    fn run(&self, number: u64) {
        let mut state = self.state.lock();
        loop {
            while let Some(queued) = state.queue.pop_front() {
                state = self.run_job(state, queued, number);
            }
            if state.closed {
                return;
            }
            state.idle += 1;
            // The limit retires the thread; nobody polls for work here.
            let (woken, timed_out) = self.work.wait_for(state, self.config.keep_alive);
            state = woken;
            state.idle -= 1;
            if state.told > 0 {
                state.told -= 1;
            } else if timed_out && state.queue.is_empty() {
                return;
            }
        }
    }

    fn run_job<'a>(
        &'a self,
        mut state: windlass_core::sync::MutexGuard<'a, State>,
        queued: Queued,
        number: u64,
    ) -> windlass_core::sync::MutexGuard<'a, State> {
        let expired = queued
            .start_by
            .is_some_and(|start_by| clock::now() > start_by);
        if expired {
            state.expired += 1;
        } else if let Some(task) = queued.job.task() {
            state.running.insert(number, task);
        }
        drop(state);
        if expired {
            queued.job.expire();
        } else {
            queued.job.run();
        }
        let mut state = self.state.lock();
        state.running.remove(&number);
        state
    }

    fn leave(&self) {
        self.state.lock().threads -= 1;
        self.ended.notify_all();
    }

    /// True on one of this pool's threads.
    pub(crate) fn is_current(&self) -> bool {
        OWN.with(|own| std::ptr::eq(own.get(), self))
    }

    /// Refuses new jobs and drops those that have not begun.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let dropped = std::mem::take(&mut state.queue);
        drop(state);
        self.work.notify_all();
        drop(dropped);
    }

    /// Waits for the threads; names the jobs that do not end within `limit`.
    pub(crate) fn join(&self, limit: Duration) -> Vec<StuckJob> {
        let deadline = from_now(limit);
        let mut state = self.state.lock();
        while state.threads > 0 {
            let now = clock::now();
            if now >= deadline {
                break;
            }
            state = self
                .ended
                .wait_for(state, Duration::from_nanos(deadline - now))
                .0;
        }
        state.running.values().map(StuckJob::of).collect()
    }

    pub(crate) fn snapshot(&self) -> BlockingSnapshot {
        let state = self.state.lock();
        BlockingSnapshot {
            threads: state.threads,
            idle: state.idle,
            queued: state.queue.len(),
            submitted: state.submitted,
            expired: state.expired,
        }
    }
}

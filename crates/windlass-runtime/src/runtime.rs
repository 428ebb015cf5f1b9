//! The runtime: owns the pool and the blocking threads, and ends them.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};
use std::time::Duration;

use windlass_core::observe::{Event, LeakedTask, Recording, StuckWorker};
use windlass_core::sched::ResizeError;
use windlass_core::sched::pool::{Hooks, Pool, StallHook, StopReport};
use windlass_core::sched::simulate::Trace;
use windlass_core::sync::{Mutex, UnfinishedThread, clock};
use windlass_core::task::JoinHandle;
use windlass_core::thread_end;

use crate::blocking::{BlockingPool, StuckJob};
use crate::builder::{BuildError, Builder};
use crate::coroutine::LeakedCoroutine;
use crate::current_thread::CurrentThread;
use crate::dispatch::{IoDispatcher, PrivatePool, UnconfinedTasks};
use crate::driver::{IoDriver, Reality};
use crate::event_log;
use crate::frontend::FrontEnds;
use crate::handle::{EnterGuard, Handle};
use crate::identity::{Identity, RuntimeFlavor};
use crate::observe::{Observers, RuntimeSnapshot};
use crate::os::Process;
use crate::simulator::Simulator;
use windlass_sync::time::Timers;

/// Workers, blocking threads, and everything that runs on them.
///
/// Dropping it ends every task (see [`Runtime::shutdown`]) within the builder's
/// `shutdown_timeout`.
pub struct Runtime {
    handle: Handle,
    shutdown_timeout: Duration,
    /// `shutdown` has been called: nothing is left for `Drop`.
    stopped: bool,
}

/// What handles share.
pub(crate) struct Shared {
    pub(crate) pool: Arc<Pool>,
    /// Of a runtime without workers of its own.
    pub(crate) current_thread: Option<CurrentThread>,
    pub(crate) blocking: Arc<BlockingPool>,
    pub(crate) process: Process,
    pub(crate) identity: Identity,
    pub(crate) world: Reality,
    /// Coroutines that could not end.
    pub(crate) leaked: Mutex<Vec<LeakedCoroutine>>,
    pub(crate) io: IoDispatcher,
    pub(crate) unconfined: UnconfinedTasks,
    pub(crate) front_ends: FrontEnds,
    pub(crate) observers: Observers,
    /// The listener for stalls, and when it is called; private pools ask, too.
    pub(crate) stalls: Stalls,
    /// Dispatchers with a pool of their own.
    pub(crate) private: Mutex<Vec<Weak<PrivatePool>>>,
}

/// What the watchdogs of a runtime's pools look for.
#[derive(Clone, Default)]
pub(crate) struct Stalls {
    pub(crate) threshold: Option<Duration>,
    pub(crate) hook: Option<StallHook>,
}

impl Shared {
    pub(crate) fn timers(&self) -> &Timers {
        match &self.world {
            Reality::Real(driver) => driver.timers(),
            Reality::Simulated(simulator) => simulator.timers(),
        }
    }

    pub(crate) fn io_sources(&self) -> usize {
        match &self.world {
            Reality::Real(driver) => driver.sources(),
            Reality::Simulated(_) => 0,
        }
    }

    /// The dispatchers with a pool of their own that are there.
    pub(crate) fn private_pools(&self) -> Vec<Arc<PrivatePool>> {
        self.private
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    pub(crate) fn simulator(&self) -> Option<&Arc<Simulator>> {
        match &self.world {
            Reality::Real(_) => None,
            Reality::Simulated(simulator) => Some(simulator),
        }
    }
}

/// The report of a shutdown.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Workers that were still inside a poll; their threads are detached.
    pub stuck_workers: Vec<StuckWorker>,
    /// Blocking closures that were still running; their threads are detached.
    pub stuck_jobs: Vec<StuckJob>,
    /// Threads that did not end although their code had: a thread-local's destructor hangs, or a
    /// stall hook. They are detached.
    pub stuck_threads: Vec<UnfinishedThread>,
    /// Suspended tasks that no worker was left to drop.
    pub leaked_tasks: usize,
    /// The first of these tasks, at most 16 for each pool.
    pub leaked: Vec<LeakedTask>,
    /// What front ends could not stop in time (processes, graphs, the tokio guest), a line each.
    pub not_stopped: Vec<String>,
    /// Coroutines that did not unwind; they are leaked with their stacks.
    pub leaked_coroutines: Vec<LeakedCoroutine>,
    /// How long it took.
    pub took: Duration,
    /// How long it might take. Past that, what does not return gets another 100 ms before it is
    /// given up.
    pub limit: Duration,
}

impl ShutdownReport {
    /// True if everything stopped in time.
    pub fn is_clean(&self) -> bool {
        self.stuck_workers.is_empty()
            && self.stuck_jobs.is_empty()
            && self.stuck_threads.is_empty()
            && self.leaked_tasks == 0
            && self.leaked_coroutines.is_empty()
            && self.not_stopped.is_empty()
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return write!(f, "stopped in {:?}", self.took);
        }
        write!(f, "not everything stopped within {:?}:", self.limit)?;
        self.stuck_workers
            .iter()
            .try_for_each(|stuck| write!(f, "\n  {stuck}"))?;
        self.stuck_jobs
            .iter()
            .try_for_each(|stuck| write!(f, "\n  {stuck}"))?;
        self.not_stopped
            .iter()
            .try_for_each(|line| write!(f, "\n  {line}"))?;
        self.leaked_coroutines
            .iter()
            .try_for_each(|leaked| write!(f, "\n  {leaked}"))?;
        self.stuck_threads
            .iter()
            .try_for_each(|thread| write!(f, "\n  {thread}"))?;
        self.leaked
            .iter()
            .try_for_each(|task| write!(f, "\n  {task}"))?;
        let unnamed = self.leaked_tasks.saturating_sub(self.leaked.len());
        if unnamed > 0 {
            let more = if self.leaked.is_empty() { "" } else { "more " };
            write!(
                f,
                "\n  {unnamed} {more}suspended tasks could not be dropped"
            )?;
        }
        Ok(())
    }
}

impl Runtime {
    /// Options with their defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A runtime with default options.
    pub fn new() -> Result<Runtime, BuildError> {
        Builder::default().build()
    }

    pub(crate) fn start(builder: Builder) -> Result<Runtime, BuildError> {
        let process = Process::current();
        let driver = IoDriver::new(builder.config.workers).map_err(BuildError::Driver)?;
        let stalls = Stalls {
            threshold: builder.hooks.stall_threshold,
            hook: builder.hooks.on_stall.clone(),
        };
        let mut hooks = with_own_timers(builder.hooks, &driver);
        hooks.on_events = event_log::from_environment();
        let (pool, current_thread) = match builder.config.current_thread {
            true => {
                let pool = Pool::on_callers(builder.config, driver.clone());
                (pool, Some(CurrentThread::new(hooks)))
            }
            false => {
                let pool = Pool::start(builder.config, hooks, Some(driver.clone()));
                (pool.map_err(BuildError::Threads)?, None)
            }
        };
        let flavor = match current_thread {
            Some(_) => RuntimeFlavor::CurrentThread,
            None => RuntimeFlavor::MultiThread,
        };
        let shared = Arc::new(Shared {
            pool,
            current_thread,
            blocking: BlockingPool::new(builder.blocking),
            process,
            identity: Identity::new(flavor, builder.name),
            world: Reality::Real(driver),
            leaked: Mutex::default(),
            io: IoDispatcher::default(),
            unconfined: UnconfinedTasks::default(),
            front_ends: FrontEnds::default(),
            observers: Observers::default(),
            stalls,
            private: Mutex::default(),
        });
        Ok(Runtime::of(shared, builder.shutdown_timeout))
    }

    fn of(shared: Arc<Shared>, shutdown_timeout: Duration) -> Runtime {
        let weak: Weak<dyn Any + Send + Sync> = Arc::downgrade(&shared) as _;
        shared.pool.attach(weak);
        Runtime {
            handle: Handle::new(shared),
            shutdown_timeout,
            stopped: false,
        }
    }

    /// A simulated runtime: one thread, virtual time, and choices that depend on `seed` alone. See
    /// [`simulator`](crate::simulator).
    pub fn simulated(seed: u64) -> Runtime {
        Runtime::simulated_as(seed, None)
    }

    /// A runtime whose clock is virtual, for tests that are to behave the same each time.
    #[cfg(feature = "test-util")]
    pub(crate) fn paused(name: Option<String>) -> Runtime {
        Runtime::simulated_as(0, name)
    }

    fn simulated_as(seed: u64, name: Option<String>) -> Runtime {
        crate::hooks::install();
        let simulator = Simulator::new(seed);
        let defaults = Builder::default();
        let shared = Arc::new(Shared {
            pool: simulator.pool().clone(),
            current_thread: None,
            blocking: BlockingPool::new(defaults.blocking),
            process: Process::current(),
            identity: Identity::new(RuntimeFlavor::CurrentThread, name),
            world: Reality::Simulated(simulator),
            leaked: Mutex::default(),
            io: IoDispatcher::default(),
            unconfined: UnconfinedTasks::default(),
            front_ends: FrontEnds::default(),
            observers: Observers::default(),
            stalls: Stalls::default(),
            private: Mutex::default(),
        });
        Runtime::of(shared, defaults.shutdown_timeout)
    }

    /// What a simulated runtime has done so far; none for a real one.
    ///
    /// # Panics
    /// Inside the simulation.
    pub fn trace(&self) -> Option<Trace> {
        Some(self.handle.shared().simulator()?.trace())
    }

    /// A handle: cheap to clone, may outlive the runtime.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs `future` on this thread, which sleeps while it is pending. Inside, `spawn` finds this
    /// runtime. On a current-thread runtime
    /// ([`Builder::new_current_thread`](crate::Builder::new_current_thread)) this thread runs all
    /// tasks meanwhile; a [`Handle`]'s `block_on` does not.
    ///
    /// # Panics
    /// Inside a task or another `block_on`.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let shared = self.handle.shared();
        match &shared.current_thread {
            Some(current_thread) => {
                shared.process.check();
                current_thread.block_on(&self.handle, future)
            }
            None => self.handle.block_on(future),
        }
    }

    /// Starts a task.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle.spawn(future)
    }

    /// Runs a closure that may block on a thread of its own kind.
    #[track_caller]
    pub fn spawn_blocking<T, F>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.handle.spawn_blocking(f)
    }

    /// Makes this runtime the one that `spawn` finds on this thread, until the guard is dropped.
    pub fn enter(&self) -> EnterGuard {
        self.handle.enter()
    }

    /// Everything the runtime counts, as plain data.
    pub fn snapshot(&self) -> RuntimeSnapshot {
        self.handle.snapshot()
    }

    /// Writes workers, queues, suspended tasks and the latest events, for people.
    pub fn debug_dump(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        self.handle.debug_dump(out)
    }

    /// From now on so many workers run tasks. More are there when this returns; those that are too
    /// many leave when they have a moment, and put what they have queued where the others look. A
    /// worker on which coroutines have begun stays until they have ended.
    ///
    /// ```
    /// use windlass_runtime::Runtime;
    ///
    /// let runtime = Runtime::builder().workers(1).max_workers(4).build()?;
    /// runtime.resize(4)?;
    /// assert!(runtime.resize(5).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resize(&self, workers: usize) -> Result<(), ResizeError> {
        self.handle.shared().pool.resize(workers)
    }

    /// What the flight recorder records from now on.
    pub fn set_recording(&self, recording: Recording) {
        let shared = self.handle.shared();
        shared.pool.set_recording(recording);
        for private in shared.private_pools() {
            private.set_recording(recording);
        }
    }

    /// The events that the flight recorder still holds, oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.handle.shared().pool.events()
    }

    /// Ends the runtime as [`Runtime::shutdown`] does, without a report.
    ///
    /// # Panics
    /// On one of the runtime's own threads, which would wait for itself.
    #[track_caller]
    pub fn shutdown_timeout(self, duration: Duration) {
        let _report = self.shutdown(duration);
    }

    /// Ends the runtime without waiting, also on one of its own threads: another thread does it.
    pub fn shutdown_background(self) {
        // A thread that cannot be started drops the closure, and with it the runtime.
        let _ = windlass_core::sync::thread::spawn(REAPER.into(), 0, move || drop(self));
    }

    /// Ends the runtime: refuses new work, cancels and drops every task exactly once, joins all
    /// threads. Shielded sections and blocking closures may run on until `timeout`. What has not
    /// stopped by then is named in the report, and its threads are detached.
    ///
    /// # Panics
    /// On one of the runtime's own threads, which would wait for itself.
    pub fn shutdown(mut self, timeout: Duration) -> ShutdownReport {
        assert!(!self.handle.is_own_thread(), "{}", INSIDE);
        self.stopped = true;
        stop(self.handle.shared(), timeout)
    }
}

// A runtime holds no value of the program that a panic could leave half changed.
impl UnwindSafe for Runtime {}
impl RefUnwindSafe for Runtime {}

/// The name of a thread that ends a runtime.
const REAPER: &str = "windlass-reaper";

const INSIDE: &str = "a Runtime must not be shut down or dropped on one of its own threads: they \
                      would wait for themselves; move it out of the task, or use a Handle there";

/// Each worker thread finds its own timers before it runs anything.
fn with_own_timers(hooks: Hooks, driver: &Arc<IoDriver>) -> Hooks {
    let (driver, first) = (driver.clone(), hooks.on_start);
    Hooks {
        on_start: Some(Arc::new(move |worker| {
            windlass_sync::time::set_shard(Some(driver.timers().of_worker(worker).clone()));
            if let Some(first) = &first {
                first(worker);
            }
        })),
        ..hooks
    }
}

fn stop(shared: &Arc<Shared>, timeout: Duration) -> ShutdownReport {
    if !shared.process.is_here() {
        // The threads are the parent's.
        return ShutdownReport::default();
    }
    let began = clock::now();
    let left = || timeout.saturating_sub(Duration::from_nanos(clock::now() - began));
    // The rest of the time is for the tasks that are left.
    let mut not_stopped = FrontEnds::stop(shared, timeout - timeout / 10);
    // What is idle goes to this runtime's own workers, who drop it.
    let entered = Handle::new(shared.clone());
    let entered = entered.enter();
    shared.unconfined.close();
    drop(entered);
    shared.blocking.close();
    let (mut pool, stuck_jobs) = match &shared.world {
        Reality::Real(driver) => {
            let mut report = StopReport::default();
            if let Some(current_thread) = &shared.current_thread {
                current_thread.begin_end(shared);
            }
            for private in shared.private_pools() {
                report.merge(private.shutdown(left()));
            }
            report.merge(match &shared.current_thread {
                Some(_) => shared.pool.end_stopped(left()),
                None => shared.pool.shutdown(Some(left())),
            });
            driver.close();
            (report, shared.blocking.join(left()))
        }
        Reality::Simulated(simulator) => simulator.shutdown(timeout),
    };
    // Last: what our tasks held of them is dropped.
    not_stopped.extend(shared.front_ends.close(left()));
    // Unconfined ones that are inside another task's turn.
    pool.leaked_tasks += shared.unconfined.len();
    ShutdownReport {
        stuck_workers: pool.stuck,
        stuck_jobs,
        stuck_threads: pool.unfinished_threads,
        leaked_tasks: pool.leaked_tasks,
        leaked: pool.leaked,
        not_stopped,
        leaked_coroutines: std::mem::take(&mut *shared.leaked.lock()),
        took: Duration::from_nanos(clock::now() - began),
        limit: timeout,
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if self.stopped {
            return;
        }
        if !self.handle.is_own_thread() {
            stop(self.handle.shared(), self.shutdown_timeout);
            return;
        }
        // Another thread has to do it: these threads are what it waits for.
        let (shared, timeout) = (self.handle.shared().clone(), self.shutdown_timeout);
        let _ = windlass_core::sync::thread::spawn(REAPER.into(), 0, move || {
            stop(&shared, timeout);
        });
        // A process that exits inside of a task destroys thread-locals, and one of them may be
        // this.
        let is_excused = windlass_core::sync::thread::panicking() || thread_end::process_exits();
        assert!(is_excused, "{}", INSIDE);
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("pool", &self.handle.shared().pool)
            .finish()
    }
}

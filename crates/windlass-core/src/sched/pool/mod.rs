//! The pool: workers with their queues and idle set; one engine instance.

mod current_thread;
mod driver;
mod shutdown;
mod snapshot;
mod spawn;
mod submit;

use std::any::Any;
use std::io;
use std::sync::{OnceLock, Weak};

use crate::context;
use crate::observe::Recording;
use crate::queue::{Classes, Injector};
pub use crate::sched::config::{Config, EventHook, Hooks, Spin, StallHook, ThreadHook};
use crate::sched::crew::Crew;
use crate::sched::driver::{Driver, DriverLock};
use crate::sched::idle::Idle;
use crate::sched::stop::Stop;
use crate::sched::watchdog::{self, Watchdog};
use crate::sched::worker::Worker;
use crate::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, Padded, thread};
use crate::task::{Header, contain};

pub use self::shutdown::StopReport;
pub use self::spawn::{AdmissionError, RefusedTask, spawn_here_or};

/// Workers, queues and idle set.
pub struct Pool {
    pub(crate) config: Config,
    /// Tells it from every other pool of the program, also from those that have ended. From 1.
    pub(crate) number: usize,
    pub(crate) crew: Crew,
    pub(crate) injector: Injector<Header>,
    // Read by every worker before every poll and written rarely: on lines of their own.
    pub(crate) classes: Padded<Classes>,
    pub(crate) stop: Padded<Stop>,
    pub(crate) idle: Idle,
    pub(crate) watchdog: Watchdog,
    recording: AtomicU8,
    outside: Padded<Outside>,
    driver: Option<Arc<dyn Driver>>,
    driver_lock: DriverLock,
    /// This pool's address as its `Arc` has it: a pointer that comes from a reference to the pool
    /// may not be used to count one more reference.
    address: AtomicPtr<Pool>,
    watchdog_thread: Mutex<Option<thread::JoinHandle<()>>>,
    /// What the runtime above wants to find again from a worker.
    attachment: OnceLock<Weak<dyn Any + Send + Sync>>,
}

/// Numbers that threads outside the pool write.
#[derive(Debug, Default)]
struct Outside {
    ids: AtomicU64,
    submitted: AtomicU64,
    refused: AtomicU64,
}

impl Pool {
    /// Starts the workers. If a thread cannot be started, those that were are stopped again.
    pub fn start(
        config: Config,
        hooks: Hooks,
        driver: Option<Arc<dyn Driver>>,
    ) -> io::Result<Arc<Pool>> {
        let pool = Pool::assemble(config, driver);
        if hooks.on_events.is_some() {
            pool.set_recording(Recording::Full);
        }
        if let Err(error) = pool.crew.start(&pool, &hooks) {
            pool.shutdown(None);
            return Err(error);
        }
        if cfg!(not(any(windlass_loom, windlass_shuttle))) {
            match watchdog::start(pool.clone(), hooks.stall_threshold, hooks.on_stall) {
                Ok(thread) => *pool.watchdog_thread.lock() = Some(thread),
                Err(error) => {
                    pool.shutdown(None);
                    return Err(error);
                }
            }
        }
        Ok(pool)
    }

    /// A pool of one worker and no thread: a simulation runs it, or a caller of `run_until`.
    pub(crate) fn without_threads(config: Config, driver: Option<Arc<dyn Driver>>) -> Arc<Pool> {
        let pool = Pool::assemble(config, driver);
        pool.crew.join_threadless();
        pool.idle.join();
        pool
    }

    fn assemble(config: Config, driver: Option<Arc<dyn Driver>>) -> Arc<Pool> {
        let capacity = config.worker_capacity();
        let pool = Arc::new(Pool {
            number: next_number(),
            crew: Crew::new(capacity, config.workers),
            injector: Injector::default(),
            classes: Padded::default(),
            stop: Padded(Stop::new(capacity)),
            idle: Idle::with_capacity(capacity),
            watchdog: Watchdog::default(),
            recording: AtomicU8::new(config.recording as u8),
            outside: Padded::default(),
            driver,
            driver_lock: DriverLock::default(),
            address: AtomicPtr::new(std::ptr::null_mut()),
            watchdog_thread: Mutex::default(),
            attachment: OnceLock::new(),
            config,
        });
        // Relaxed: other threads get the pool from this thread.
        pool.address
            .store(Arc::as_ptr(&pool).cast_mut(), Ordering::Relaxed);
        pool
    }

    /// The pool as the home of its tasks: a pointer that a reference can be counted with.
    #[inline]
    pub(crate) fn as_home(&self) -> *const () {
        self.address.load(Ordering::Relaxed).cast_const().cast()
    }

    /// Leaves something for [`attachment`](Pool::attachment) to find; once. Held weakly, so that
    /// freeing the pool frees nothing of its owner's.
    pub fn attach(&self, attachment: Weak<dyn Any + Send + Sync>) {
        let _ = self.attachment.set(attachment);
    }

    /// What was attached, while it is alive.
    pub fn attachment(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.attachment.get()?.upgrade()
    }

    /// Whether a task could find itself on another thread from one turn to the next.
    pub(crate) fn has_many_threads(&self) -> bool {
        !self.config.in_order && !self.config.simulated && !self.config.current_thread
    }

    /// Workers there are.
    pub fn workers(&self) -> usize {
        self.idle.workers()
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rings: Vec<usize> = self
            .crew
            .remotes()
            .map(|remote| remote.ring.len())
            .collect();
        f.debug_struct("Pool")
            .field("name", &self.config.name)
            .field("rings", &rings)
            .field("injector", &self.injector.len())
            .field("idle", &self.idle.counts())
            .field("phase", &self.stop.phase())
            .finish()
    }
}

/// The number of the next pool.
fn next_number() -> usize {
    #![allow(
        clippy::disallowed_types,
        reason = "no model depends on it, and the model checkers have no statics"
    )]
    use std::sync::atomic;
    static POOLS: atomic::AtomicUsize = atomic::AtomicUsize::new(0);
    // Relaxed: the number is all there is to it.
    POOLS.fetch_add(1, atomic::Ordering::Relaxed) + 1
}

/// A worker's thread, from its first task to its last.
pub(crate) fn run_worker(pool: &Arc<Pool>, worker_id: usize, hooks: &Hooks) {
    call_hook(&hooks.on_start, worker_id);
    let worker = Worker::new(pool.clone(), worker_id, hooks.on_events.clone());
    context::enter_worker(&worker, || worker.run());
    drop(worker);
    call_hook(&hooks.on_stop, worker_id);
}

fn call_hook(hook: &Option<ThreadHook>, index: usize) {
    if let Some(hook) = hook {
        // A panicking hook must not take the worker's tasks with it.
        contain(|| hook(index));
    }
}

/// The pool whose worker this thread is.
pub fn current() -> Option<Arc<Pool>> {
    context::with_worker(|worker| worker.map(|worker| worker.pool.clone()))
}

/// The pool whose worker this thread is, and which of its workers.
pub fn current_worker() -> Option<(Arc<Pool>, usize)> {
    context::with_worker(|worker| worker.map(|worker| (worker.pool.clone(), worker.index)))
}

/// True on a worker of any pool.
#[inline]
pub fn on_worker() -> bool {
    context::with_worker(|worker| worker.is_some())
}

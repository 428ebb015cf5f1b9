//! Building a runtime: options by value, then one validation.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::observe::{Recording, Stall};
use windlass_core::sched::pool::{Config, Hooks};
use windlass_core::tuning::{self, Policy};

use crate::blocking;
use crate::runtime::Runtime;

/// The time that a worker looks for work before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Spin {
    /// A few microseconds: a steal that just missed is caught, an idle runtime costs nothing.
    #[default]
    Short,
    /// No spinning at all: for machines with more runnable threads than cores.
    None,
    /// This many rounds that pause the core, then this many that give it away, where that has found
    /// something lately; otherwise one round, and now and then all of them to see.
    Rounds {
        /// Rounds that pause the core.
        tight: u32,
        /// Further rounds that give it away.
        yields: u32,
    },
}

/// What the scheduler weighs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SchedPolicy {
    /// The most work in the least time: short work is left to the worker that has it, because
    /// waking another costs more than the work.
    #[default]
    Throughput,
    /// Everything soon: another worker is woken as soon as there is anything that it could run.
    Latency,
}

/// How the driver learns of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Backend {
    /// The best that this system has: today the readiness interface of its kernel.
    #[default]
    Auto,
    /// epoll; refused where there is none.
    Epoll,
}

/// Configures a [`Runtime`]. Everything has a default; `build` checks it all.
///
/// ```
/// use windlass_runtime::Runtime;
///
/// let runtime = Runtime::builder().workers(2).name("ingest").build()?;
/// assert_eq!(runtime.block_on(async { 6 * 7 }), 42);
/// # Ok::<(), windlass_runtime::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build() is called"]
pub struct Builder {
    pub(crate) config: Config,
    pub(crate) hooks: Hooks,
    pub(crate) blocking: blocking::Config,
    pub(crate) shutdown_timeout: Duration,
    spin: Spin,
    backend: Backend,
    stack_size: Option<usize>,
    pub(crate) name: Option<String>,
    /// Whether the threads have a name of their own.
    names_threads: bool,
    #[cfg(feature = "test-util")]
    start_paused: bool,
}

/// The runtime could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// More workers than the engine can tell apart.
    TooManyWorkers {
        /// What was asked for.
        asked: usize,
        /// The most there can be.
        most: usize,
    },
    /// A number that must not be zero is.
    Zero {
        /// The builder's method.
        option: &'static str,
    },
    /// A thread name holds a NUL byte.
    BadName,
    /// A stack smaller than what a thread needs to start.
    StackTooSmall {
        /// What was asked for.
        asked: usize,
        /// The least there can be.
        least: usize,
    },
    /// The operating system refused to start a thread.
    Threads(io::Error),
    /// The operating system refused what the driver waits on (epoll, eventfd, timerfd).
    Driver(io::Error),
    /// The backend that was asked for does not exist on this system.
    NoSuchBackend(Backend),
}

/// The most workers: what the task ids and the idle set are laid out for.
const MAX_WORKERS: usize = 32_768;
/// The most blocking threads: each has a number by which coroutines find it again.
const MAX_BLOCKING: usize = u16::MAX as usize;
/// The least stack: a thread's start-up code needs a few pages.
const MIN_STACK: usize = 16 * 1024;

impl Default for Builder {
    fn default() -> Self {
        Builder {
            config: Config {
                workers: 0,
                max_workers: 0,
                ..Config::default()
            },
            hooks: Hooks {
                stall_threshold: Some(Duration::from_nanos(tuning::STALL_NS)),
                ..Hooks::default()
            },
            blocking: blocking::Config::default(),
            shutdown_timeout: Duration::from_secs(10),
            spin: Spin::default(),
            backend: Backend::default(),
            stack_size: None,
            name: None,
            names_threads: false,
            #[cfg(feature = "test-util")]
            start_paused: false,
        }
    }
}

impl Builder {
    /// A runtime with workers, one per core unless [`Builder::workers`] says otherwise: the same
    /// as [`Runtime::builder`].
    pub fn new_multi_thread() -> Builder {
        Builder::default()
    }

    /// A runtime without workers: the thread in [`Runtime::block_on`] runs the tasks, and nothing
    /// runs outside of it. Closures that may block have threads as in other runtimes, and the
    /// runtime ends on a thread of its own.
    ///
    /// A coroutine goes on only within the call of `block_on` in which it began, and one that is
    /// suspended when the runtime ends is leaked and named in the report: use a runtime with
    /// workers for coroutines. No watchdog looks for stalls.
    ///
    /// ```
    /// use windlass_runtime::Builder;
    ///
    /// let runtime = Builder::new_current_thread().enable_all().build()?;
    /// let here = std::thread::current().id();
    /// let task = runtime.spawn(async { std::thread::current().id() });
    /// assert_eq!(runtime.block_on(task).unwrap(), here);
    /// # Ok::<(), windlass_runtime::BuildError>(())
    /// ```
    pub fn new_current_thread() -> Builder {
        let mut builder = Builder::default();
        builder.config.current_thread = true;
        builder
    }

    /// Has no effect: sockets and timers always work. tokio's builders need it.
    pub fn enable_all(&mut self) -> &mut Self {
        self
    }

    /// Has no effect, as [`Builder::enable_all`].
    pub fn enable_io(&mut self) -> &mut Self {
        self
    }

    /// Has no effect, as [`Builder::enable_all`].
    pub fn enable_time(&mut self) -> &mut Self {
        self
    }

    /// Worker threads. 0 (the default) means the available parallelism, cgroup limits respected.
    pub fn workers(&mut self, workers: usize) -> &mut Self {
        self.config.workers = workers;
        self
    }

    /// Sets the number of workers, as [`Builder::workers`] does; a current-thread runtime has one
    /// whatever the number is.
    ///
    /// # Panics
    /// If the number is zero.
    #[track_caller]
    pub fn worker_threads(&mut self, val: usize) -> &mut Self {
        assert!(val > 0, "Worker threads cannot be set to 0");
        self.workers(val)
    }

    /// The most workers that [`Runtime::resize`] can ask for (default: twice the available
    /// parallelism, at least 16).
    pub fn max_workers(&mut self, workers: usize) -> &mut Self {
        self.config.max_workers = workers;
        self
    }

    /// What the scheduler weighs more (default: throughput).
    pub fn policy(&mut self, policy: SchedPolicy) -> &mut Self {
        self.config.policy = match policy {
            SchedPolicy::Throughput => Policy::THROUGHPUT,
            SchedPolicy::Latency => Policy::LATENCY,
        };
        self
    }

    /// Cooperative operations (a receive that is ready, a lock that is free) that a task may make
    /// in one go before it goes to the tail of its queue (default 128).
    pub fn run_budget(&mut self, operations: u8) -> &mut Self {
        self.config.run_budget = operations;
        self
    }

    /// Whether workers steal from each other (default: yes).
    pub fn stealing(&mut self, stealing: bool) -> &mut Self {
        self.config.stealing = stealing;
        self
    }

    /// Victims that one search round probes (default 4); the look before sleeping visits all.
    pub fn victims_per_search(&mut self, victims: usize) -> &mut Self {
        self.config.victims = victims;
        self
    }

    /// Tasks the injector holds before `try_spawn` is refused (default 65,536). `spawn` and wakes
    /// are never refused.
    pub fn injector_capacity(&mut self, tasks: usize) -> &mut Self {
        self.config.injector_capacity = tasks;
        self
    }

    /// Sets the name of the runtime, which is also the prefix of the thread names unless
    /// [`Builder::thread_name`] says otherwise (default `windlass`).
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the prefix of the thread names; each thread adds its number.
    pub fn thread_name(&mut self, val: impl Into<String>) -> &mut Self {
        self.config.name = val.into();
        self.names_threads = true;
        self
    }

    /// Sets the prefix of the thread names by a function, which is called once.
    pub fn thread_name_fn<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.thread_name(f())
    }

    /// Stack size of worker and blocking threads (default: the platform's).
    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Called on each thread of workers and of blocking closures before it runs anything.
    pub fn on_thread_start(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.blocking.on_start = Some(Arc::new(f));
        self
    }

    /// Called on each thread of workers and of blocking closures after it ran everything.
    pub fn on_thread_stop(&mut self, f: impl Fn() + Send + Sync + 'static) -> &mut Self {
        self.blocking.on_stop = Some(Arc::new(f));
        self
    }

    /// Called on each worker thread, with its index, before it runs anything.
    pub fn on_worker_start(&mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> &mut Self {
        self.hooks.on_start = Some(Arc::new(hook));
        self
    }

    /// Called on each worker thread, with its index, after it ran everything.
    pub fn on_worker_stop(&mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> &mut Self {
        self.hooks.on_stop = Some(Arc::new(hook));
        self
    }

    /// Sets when a single poll counts as stalled (default 50 ms; none: stalls are not looked for).
    pub fn stall_threshold(&mut self, threshold: Option<Duration>) -> &mut Self {
        self.hooks.stall_threshold = threshold;
        self
    }

    /// Called, on the watchdog's thread, once for each poll that is stalled, while it is.
    pub fn on_stall(&mut self, hook: impl Fn(&Stall) + Send + Sync + 'static) -> &mut Self {
        self.hooks.on_stall = Some(Arc::new(hook));
        self
    }

    /// Sets how long a worker looks for work before it sleeps.
    pub fn spin(&mut self, spin: Spin) -> &mut Self {
        self.spin = spin;
        self
    }

    /// Sets how the driver learns of I/O (default: the best that this system has).
    pub fn backend(&mut self, backend: Backend) -> &mut Self {
        self.backend = backend;
        self
    }

    /// What the flight recorder records at first (default: sampled).
    pub fn recording(&mut self, recording: Recording) -> &mut Self {
        self.config.recording = recording;
        self
    }

    /// The most threads of the blocking pool (default 512); they start when they are needed.
    pub fn max_blocking_threads(&mut self, threads: usize) -> &mut Self {
        self.blocking.max_threads = threads;
        self
    }

    /// The most threads that give turns to tasks of the io dispatcher at the same time (default:
    /// the available parallelism, at least 64). They are blocking threads.
    pub fn max_io_threads(&mut self, threads: usize) -> &mut Self {
        self.blocking.max_turns = threads;
        self
    }

    /// Sets how long an idle blocking thread stays (default 10 s).
    pub fn thread_keep_alive(&mut self, keep_alive: Duration) -> &mut Self {
        self.blocking.keep_alive = keep_alive;
        self
    }

    /// Sets how long dropping the runtime waits for shielded sections, running polls and blocking
    /// jobs (default 10 s).
    pub fn shutdown_timeout(&mut self, timeout: Duration) -> &mut Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Seeds the choice of victims, for reproducible runs of a single worker.
    pub fn seed(&mut self, seed: u64) -> &mut Self {
        self.config.seed = seed;
        self
    }

    /// Makes the clock of a current-thread runtime virtual: it moves when every task waits, and by
    /// [`time::advance`](crate::time::advance). Such a runtime is a simulation, so it has no
    /// sockets of the operating system, and its clock stays virtual.
    ///
    /// # Panics
    /// In a runtime with workers.
    #[cfg(feature = "test-util")]
    #[track_caller]
    pub fn start_paused(&mut self, start_paused: bool) -> &mut Self {
        let is_possible = !start_paused || self.config.current_thread;
        assert!(
            is_possible,
            "`Builder::start_paused` needs a current-thread runtime"
        );
        self.start_paused = start_paused;
        self
    }

    /// Checks the options and starts the workers. The builder can be used again.
    pub fn build(&mut self) -> Result<Runtime, BuildError> {
        self.clone().start()
    }

    fn start(mut self) -> Result<Runtime, BuildError> {
        crate::hooks::install();
        if let Some(name) = self.name.as_ref().filter(|_| !self.names_threads) {
            self.config.name.clone_from(name);
        }
        if self.config.current_thread {
            self.config.workers = 1;
            self.config.max_workers = 1;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self.config.workers == 0 {
            self.config.workers = cores;
        }
        if self.config.max_workers == 0 {
            self.config.max_workers = (2 * cores).max(16);
        }
        self.config.max_workers = self.config.max_workers.max(self.config.workers);
        self.validate()?;
        #[cfg(feature = "test-util")]
        if self.start_paused {
            return Ok(Runtime::paused(self.name));
        }
        if !self.config.current_thread {
            self.call_on_every_thread();
        }
        self.config.stack_size = self.stack_size.unwrap_or(0);
        self.blocking.stack_size = self.config.stack_size;
        self.blocking.name = format!("{}-blocking", self.config.name);
        self.config.spin = match self.spin {
            Spin::Short => windlass_core::sched::pool::Spin::default(),
            Spin::None => windlass_core::sched::pool::Spin {
                tight: 0,
                yields: 0,
            },
            Spin::Rounds { tight, yields } => windlass_core::sched::pool::Spin {
                tight,
                yields: tight.saturating_add(yields),
            },
        };
        Runtime::start(self)
    }

    /// Lets workers call what every thread calls, too.
    fn call_on_every_thread(&mut self) {
        let (start, first) = (self.blocking.on_start.clone(), self.hooks.on_start.take());
        self.hooks.on_start = Some(Arc::new(move |worker| {
            start.as_ref().inspect(|start| start());
            first.as_ref().inspect(|first| first(worker));
        }));
        let (stop, last) = (self.blocking.on_stop.clone(), self.hooks.on_stop.take());
        self.hooks.on_stop = Some(Arc::new(move |worker| {
            last.as_ref().inspect(|last| last(worker));
            stop.as_ref().inspect(|stop| stop());
        }));
    }

    fn validate(&self) -> Result<(), BuildError> {
        if self.config.max_workers > MAX_WORKERS {
            let asked = self.config.max_workers;
            return Err(BuildError::TooManyWorkers {
                asked,
                most: MAX_WORKERS,
            });
        }
        let zero = |option| Err(BuildError::Zero { option });
        if self.config.victims == 0 {
            return zero("victims_per_search");
        }
        if self.config.run_budget == 0 {
            return zero("run_budget");
        }
        if self.config.injector_capacity == 0 {
            return zero("injector_capacity");
        }
        if self.blocking.max_threads == 0 {
            return zero("max_blocking_threads");
        }
        if self.backend == Backend::Epoll && !cfg!(any(target_os = "linux", target_os = "android"))
        {
            return Err(BuildError::NoSuchBackend(self.backend));
        }
        if self.hooks.stall_threshold == Some(Duration::ZERO) {
            return zero("stall_threshold");
        }
        if self.blocking.max_turns == 0 {
            return zero("max_io_threads");
        }
        if self.blocking.max_threads > MAX_BLOCKING {
            let asked = self.blocking.max_threads;
            return Err(BuildError::TooManyWorkers {
                asked,
                most: MAX_BLOCKING,
            });
        }
        if self.config.name.contains('\0') {
            return Err(BuildError::BadName);
        }
        match self.stack_size {
            Some(asked) if asked < MIN_STACK => Err(BuildError::StackTooSmall {
                asked,
                least: MIN_STACK,
            }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::TooManyWorkers { asked, most } => {
                write!(f, "{asked} threads were asked for; ask for {most} at most")
            }
            BuildError::Zero { option } => {
                write!(
                    f,
                    "{option}(0) leaves nothing to work with; give at least 1"
                )
            }
            BuildError::BadName => {
                f.write_str("the thread name holds a NUL byte; the system cannot take it")
            }
            BuildError::StackTooSmall { asked, least } => {
                write!(
                    f,
                    "a stack of {asked} bytes is too small; give at least {least}"
                )
            }
            BuildError::Threads(error) => {
                write!(
                    f,
                    "a thread could not be started ({error}); ask for fewer workers or smaller \
                     stacks, or raise the process's limits"
                )
            }
            BuildError::NoSuchBackend(backend) => {
                write!(
                    f,
                    "this system has no {backend:?}; use Backend::Auto, which takes what it has"
                )
            }
            BuildError::Driver(error) => {
                write!(
                    f,
                    "the driver could not be made ({error}); each runtime needs three file \
                     descriptors: build fewer runtimes, or raise the process's limits"
                )
            }
        }
    }
}

/// For functions that return an `io::Result`, as those that build a runtime of tokio.
impl From<BuildError> for io::Error {
    fn from(error: BuildError) -> io::Error {
        match error {
            BuildError::Threads(error) | BuildError::Driver(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Threads(error) | BuildError::Driver(error) => Some(error),
            _ => None,
        }
    }
}

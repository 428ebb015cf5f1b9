//! The options of a runtime.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::identity::Identity;
use super::{LocalOptions, LocalRuntime, Runtime, RuntimeFlavor};

type Hook = Arc<dyn Fn() + Send + Sync>;
type NameFn = Arc<dyn Fn() -> String + Send + Sync>;

/// The seed of a runtime with a virtual clock; tests are to behave the same each time.
const SEED: u64 = 0;

/// Makes a runtime.
#[derive(Clone)]
pub struct Builder {
    flavor: RuntimeFlavor,
    worker_threads: Option<usize>,
    max_blocking_threads: Option<usize>,
    thread_name: Option<NameFn>,
    thread_stack_size: Option<usize>,
    thread_keep_alive: Option<Duration>,
    on_thread_start: Option<Hook>,
    on_thread_stop: Option<Hook>,
    start_paused: bool,
    name: Option<String>,
}

impl Builder {
    fn new(flavor: RuntimeFlavor) -> Builder {
        Builder {
            flavor,
            worker_threads: None,
            max_blocking_threads: None,
            thread_name: None,
            thread_stack_size: None,
            thread_keep_alive: None,
            on_thread_start: None,
            on_thread_stop: None,
            start_paused: false,
            name: None,
        }
    }

    /// Begins a runtime that runs everything on the thread in `block_on`.
    pub fn new_current_thread() -> Builder {
        Builder::new(RuntimeFlavor::CurrentThread)
    }

    /// Begins a runtime with a worker per core.
    pub fn new_multi_thread() -> Builder {
        Builder::new(RuntimeFlavor::MultiThread)
    }

    /// Has no effect: sockets and timers are always there.
    pub fn enable_all(&mut self) -> &mut Self {
        self
    }

    /// Has no effect: sockets are always there.
    pub fn enable_io(&mut self) -> &mut Self {
        self
    }

    /// Has no effect: timers are always there.
    pub fn enable_time(&mut self) -> &mut Self {
        self
    }

    /// Has no effect: Windlass chooses the number by itself.
    pub fn max_io_events_per_tick(&mut self, _capacity: usize) -> &mut Self {
        self
    }

    /// Has no effect: Windlass chooses the interval by itself.
    ///
    /// # Panics
    /// If the interval is zero.
    #[track_caller]
    pub fn global_queue_interval(&mut self, interval: u32) -> &mut Self {
        assert!(interval > 0, "global_queue_interval must be greater than 0");
        self
    }

    /// Has no effect: Windlass chooses the interval by itself.
    pub fn event_interval(&mut self, _interval: u32) -> &mut Self {
        self
    }

    /// Sets the number of workers; a current-thread runtime has one.
    ///
    /// # Panics
    /// If the number is zero.
    #[track_caller]
    pub fn worker_threads(&mut self, workers: usize) -> &mut Self {
        assert!(workers > 0, "Worker threads cannot be set to 0");
        self.worker_threads = Some(workers);
        self
    }

    /// Sets the limit of threads for closures that block.
    ///
    /// # Panics
    /// If the number is zero.
    #[track_caller]
    pub fn max_blocking_threads(&mut self, threads: usize) -> &mut Self {
        assert!(threads > 0, "Max blocking threads cannot be set to 0");
        self.max_blocking_threads = Some(threads);
        self
    }

    /// Sets the name of the runtime.
    ///
    /// # Panics
    /// If the name is blank.
    #[track_caller]
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        assert!(!name.trim().is_empty(), "runtime name shouldn't be empty");
        self.name = Some(name);
        self
    }

    /// Has no effect: Windlass has no hook for a worker that goes to sleep.
    pub fn on_thread_park<F>(&mut self, _hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self
    }

    /// Has no effect: Windlass has no hook for a worker that wakes up.
    pub fn on_thread_unpark<F>(&mut self, _hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self
    }

    /// Sets the name of the threads.
    pub fn thread_name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        self.thread_name_fn(move || name.clone())
    }

    /// Sets the name of the threads by a function, which is called once per runtime.
    pub fn thread_name_fn<F>(&mut self, name: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.thread_name = Some(Arc::new(name));
        self
    }

    /// Sets the size of the threads' stacks in bytes.
    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.thread_stack_size = Some(bytes);
        self
    }

    /// Sets how long a thread for closures that block stays without work.
    pub fn thread_keep_alive(&mut self, time: Duration) -> &mut Self {
        self.thread_keep_alive = Some(time);
        self
    }

    /// Sets what each worker calls first.
    pub fn on_thread_start<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.on_thread_start = Some(Arc::new(hook));
        self
    }

    /// Sets what each worker calls last.
    pub fn on_thread_stop<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.on_thread_stop = Some(Arc::new(hook));
        self
    }

    /// Makes the clock virtual: it moves when every task waits. Such a runtime is a simulation, so
    /// it has no sockets of the operating system.
    pub fn start_paused(&mut self, paused: bool) -> &mut Self {
        self.start_paused = paused;
        self
    }

    /// Starts the runtime.
    pub fn build(&mut self) -> io::Result<Runtime> {
        let runtime = match self.start_paused {
            true => windlass_runtime::Runtime::simulated(SEED),
            false => self.native().build()?,
        };
        let identity = Identity::new(self.flavor, self.name.clone());
        Ok(Runtime::of(runtime, identity))
    }

    /// Starts a runtime that is at home on this thread.
    pub fn build_local(&mut self, _options: LocalOptions) -> io::Result<LocalRuntime> {
        self.build().map(LocalRuntime::of)
    }

    fn native(&self) -> windlass_runtime::Builder {
        let mut builder = match self.flavor {
            RuntimeFlavor::CurrentThread => windlass_runtime::Builder::new_current_thread(),
            _ => windlass_runtime::Builder::new_multi_thread(),
        };
        builder.workers(self.worker_threads.unwrap_or(0));
        let name = self.thread_name.as_ref().map(|name| name());
        builder.thread_name(name.unwrap_or_else(|| "tokio-rt-worker".to_owned()));
        if let Some(threads) = self.max_blocking_threads {
            builder.max_blocking_threads(threads);
        }
        if let Some(bytes) = self.thread_stack_size {
            builder.thread_stack_size(bytes);
        }
        if let Some(time) = self.thread_keep_alive {
            builder.thread_keep_alive(time);
        }
        if let Some(hook) = self.on_thread_start.clone() {
            builder.on_thread_start(move || hook());
        }
        if let Some(hook) = self.on_thread_stop.clone() {
            builder.on_thread_stop(move || hook());
        }
        builder
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("flavor", &self.flavor)
            .field("worker_threads", &self.worker_threads)
            .field("max_blocking_threads", &self.max_blocking_threads)
            .field("start_paused", &self.start_paused)
            .finish_non_exhaustive()
    }
}

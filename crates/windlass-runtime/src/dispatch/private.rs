//! Pools of their own: custom and single.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;

use windlass_core::observe::{Event, Recording};
use windlass_core::sched::pool::{Config, Hooks, Pool, StopReport};
use windlass_core::sched::while_blocked;
use windlass_core::sync::{Condvar, Mutex, thread};
use windlass_core::task::{BeforeFirstPoll, Body, JoinHandle, SpawnRequest};

use super::attributes::{AttributeError, Attributes, OnRefusal, Scheduling};
use super::own_thread::{self, OwnThread};
use super::serial::Serial;
use super::{Dispatcher, DispatcherSnapshot, Kind};
use crate::event_log;
use crate::handle::Handle;

/// The most workers: what the idle set is laid out for.
const MAX_WORKERS: usize = 32_768;

/// Configures a pool of its own.
///
/// ```
/// use windlass_runtime::{Runtime, dispatch::Dispatcher};
///
/// let runtime = Runtime::new()?;
/// let _entered = runtime.enter();
/// let control = Dispatcher::builder(1).name("control").nice(-5).build()?;
/// let answer = runtime.block_on(control.spawn(async { 6 * 7 }))?;
/// assert_eq!(answer, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until build() is called"]
pub struct Builder {
    workers: usize,
    name: Option<String>,
    in_order: bool,
    attributes: Attributes,
    on_refusal: OnRefusal,
    shutdown_timeout: Duration,
}

/// A dispatcher could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum DispatcherError {
    /// Without a worker nothing would run.
    Zero,
    /// More workers than the engine can tell apart.
    TooMany {
        /// The most there can be.
        most: usize,
    },
    /// The name holds a NUL byte.
    BadName,
    /// The operating system refused to start a thread.
    Threads(io::Error),
    /// The operating system refused an attribute, and that was not to be put up with.
    Attribute(AttributeError),
}

impl fmt::Display for DispatcherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DispatcherError::Zero => f.write_str("a dispatcher needs at least one worker"),
            DispatcherError::TooMany { most } => {
                write!(f, "a dispatcher has {most} workers at most")
            }
            DispatcherError::BadName => {
                f.write_str("the name of a dispatcher must not hold a NUL byte")
            }
            DispatcherError::Threads(error) => write!(
                f,
                "a thread could not be started ({error}); ask for fewer workers, or raise the \
                 process's limits"
            ),
            DispatcherError::Attribute(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DispatcherError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DispatcherError::Threads(error) => Some(error),
            DispatcherError::Attribute(error) => Some(error),
            _ => None,
        }
    }
}

impl Builder {
    pub(super) fn new(workers: usize) -> Builder {
        Builder {
            workers,
            name: None,
            in_order: false,
            attributes: Attributes::default(),
            on_refusal: OnRefusal::default(),
            shutdown_timeout: Duration::from_secs(10),
        }
    }

    pub(super) fn single() -> Builder {
        Builder {
            in_order: true,
            ..Builder::new(1)
        }
    }

    /// A name for threads, snapshots and dumps.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// One worker, and tasks have their turns in the order in which they were spawned and woken.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self.workers = 1;
        self
    }

    /// The cores that its threads may run on.
    pub fn affinity(mut self, cores: impl IntoIterator<Item = usize>) -> Self {
        let mut cores: Vec<usize> = cores.into_iter().collect();
        cores.sort_unstable();
        cores.dedup();
        self.attributes.affinity = Some(cores);
        self
    }

    /// Sets the niceness of its threads, from -20 to 19.
    pub fn nice(mut self, nice: i32) -> Self {
        self.attributes.nice = Some(nice);
        self
    }

    /// The kernel's scheduling policy for its threads.
    pub fn scheduling(mut self, scheduling: Scheduling) -> Self {
        self.attributes.scheduling = Some(scheduling);
        self
    }

    /// What to do when the system refuses one of these (default: warn).
    pub fn on_refusal(mut self, on_refusal: OnRefusal) -> Self {
        self.on_refusal = on_refusal;
        self
    }

    /// Sets how long the end of the pool waits for shielded sections and running polls (default 10
    /// s).
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Starts the threads, in the runtime this thread is in or else in the process-wide default:
    /// its timers and sockets are used.
    pub fn build(self) -> Result<Dispatcher, DispatcherError> {
        self.build_in(&Handle::current_or_default())
    }

    /// Makes the dispatcher as `build` does, in `runtime`.
    pub fn build_in(self, runtime: &Handle) -> Result<Dispatcher, DispatcherError> {
        if self.workers == 0 {
            return Err(DispatcherError::Zero);
        }
        if self.workers > MAX_WORKERS {
            return Err(DispatcherError::TooMany { most: MAX_WORKERS });
        }
        if self.name.as_ref().is_some_and(|name| name.contains('\0')) {
            return Err(DispatcherError::BadName);
        }
        let shared = runtime.shared();
        shared.process.check();
        if shared.simulator().is_some() {
            // A simulation has one worker; what a single thread adds to that is its order.
            return Ok(Dispatcher::of(if self.in_order {
                Kind::Serial(Serial::new(runtime.clone()))
            } else {
                Kind::Default(runtime.clone())
            }));
        }
        let private = Arc::new(self.start(runtime)?);
        shared.private.lock().retain(|pool| pool.strong_count() > 0);
        shared.private.lock().push(Arc::downgrade(&private));
        Ok(Dispatcher::of(Kind::Private(private)))
    }

    /// Runs `future` on a thread of its own in `runtime`, with these attributes and this name; the
    /// number of workers does not matter. In a simulation, which has one thread, there is none:
    /// await the future itself.
    ///
    /// ```
    /// use windlass_runtime::{Runtime, dispatch::Dispatcher};
    ///
    /// let runtime = Runtime::new()?;
    /// let name = async { std::thread::current().name().map(str::to_owned) };
    /// let own = Dispatcher::builder(1).name("control").run_in(runtime.handle(), name)?;
    /// assert_eq!(runtime.block_on(own).as_deref(), Some("control"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// In a simulation.
    pub fn run_in<F>(
        self,
        runtime: &Handle,
        future: F,
    ) -> Result<OwnThread<F::Output>, DispatcherError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if self.name.as_ref().is_some_and(|name| name.contains('\0')) {
            return Err(DispatcherError::BadName);
        }
        let shared = runtime.shared();
        shared.process.check();
        assert!(
            shared.simulator().is_none(),
            "a simulation has one thread: await the future itself"
        );
        let name = self.name.unwrap_or_else(|| "windlass-own".into());
        own_thread::start(name, self.attributes, self.on_refusal, runtime, future)
    }

    fn start(self, runtime: &Handle) -> Result<PrivatePool, DispatcherError> {
        let usual = if self.in_order {
            "windlass-single"
        } else {
            "windlass-custom"
        };
        let name = self.name.unwrap_or_else(|| usual.into());
        let config = Config {
            workers: self.workers,
            max_workers: self.workers,
            in_order: self.in_order,
            name: name.clone(),
            ..Config::default()
        };
        let found = Arc::new(FoundAttributes::default());
        let stalls = runtime.shared().stalls.clone();
        let hooks = Hooks {
            on_start: Some(found.hook(self.attributes.clone())),
            stall_threshold: stalls.threshold,
            on_stall: stalls.hook,
            on_events: event_log::from_environment(),
            ..Hooks::default()
        };
        let pool = Pool::start(config, hooks, None).map_err(DispatcherError::Threads)?;
        let attachment: Weak<dyn Any + Send + Sync> = Arc::downgrade(runtime.shared()) as _;
        pool.attach(attachment);
        let private = PrivatePool {
            pool,
            name,
            timeout: self.shutdown_timeout,
            found,
        };
        let refused = private.found.wait_for(self.workers);
        match (refused, self.on_refusal) {
            // The pool ends with `private`.
            (Some(error), OnRefusal::Strict) => Err(DispatcherError::Attribute(error)),
            _ => Ok(private),
        }
    }
}

/// What the threads found when they read their attributes back.
#[derive(Debug, Default)]
struct FoundAttributes {
    state: Mutex<FoundState>,
    notified: Condvar,
}

#[derive(Debug, Default)]
struct FoundState {
    /// By the worker's place in its pool, which later ones take again.
    attributes: BTreeMap<usize, Attributes>,
    refused: Option<AttributeError>,
}

impl FoundAttributes {
    fn hook(self: &Arc<FoundAttributes>, wanted: Attributes) -> Arc<dyn Fn(usize) + Send + Sync> {
        let found = self.clone();
        Arc::new(move |worker| {
            let (attributes, refused) = wanted.apply();
            for error in &refused {
                tracing::warn!(target: "windlass::dispatch", "{error}");
            }
            let mut state = found.state.lock();
            state.attributes.insert(worker, attributes);
            let first = refused.into_iter().next();
            state.refused = state.refused.take().or(first);
            drop(state);
            found.notified.notify_all();
        })
    }

    /// Waits until all have started; gives what one of them was refused.
    fn wait_for(&self, threads: usize) -> Option<AttributeError> {
        let mut state = self.state.lock();
        while state.attributes.len() < threads {
            state = self.notified.wait(state);
        }
        state.refused.take()
    }
}

/// A pool that ends with its last handle.
pub(crate) struct PrivatePool {
    pool: Arc<Pool>,
    name: String,
    timeout: Duration,
    found: Arc<FoundAttributes>,
}

impl PrivatePool {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_current(&self) -> bool {
        self.pool.is_current()
    }

    pub(super) fn spawn<B, H>(&self, request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        self.pool.spawn(request)
    }

    /// The events that its flight recorders still hold, oldest first.
    pub(super) fn events(&self) -> Vec<Event> {
        self.pool.events()
    }

    pub(crate) fn set_recording(&self, recording: Recording) {
        self.pool.set_recording(recording);
    }

    pub(crate) fn snapshot(&self) -> DispatcherSnapshot {
        DispatcherSnapshot {
            name: self.name.clone(),
            pool: Some(self.pool.snapshot()),
            slow_polls: self.pool.slow_polls(),
            attributes: self
                .found
                .state
                .lock()
                .attributes
                .values()
                .cloned()
                .collect(),
        }
    }

    /// Cancels its tasks and joins its threads; the first call counts.
    pub(crate) fn shutdown(&self, timeout: Duration) -> StopReport {
        self.pool.shutdown(Some(timeout))
    }
}

impl Drop for PrivatePool {
    fn drop(&mut self) {
        let (pool, timeout) = (self.pool.clone(), self.timeout);
        let end = move || {
            let report = pool.shutdown(Some(timeout));
            for stuck in &report.stuck {
                tracing::warn!(target: "windlass::dispatch", "at the end of a dispatcher: {stuck}");
            }
        };
        if self.pool.is_current() {
            // This thread is one of those to be joined.
            let _ = thread::spawn("windlass-reaper".into(), 0, end);
        } else {
            while_blocked(end);
        }
    }
}

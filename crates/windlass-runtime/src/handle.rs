//! Handles to a runtime, and the one that this thread has entered.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use windlass_core::executor::local_set::LocalEnterGuard;
use windlass_core::sched::pool::{self, AdmissionError, Pool};
use windlass_core::task::{Body, Job, JoinHandle, Options, SpawnRequest};

use crate::blocking::SpawnBlockingError;
use crate::builder::Builder;
use crate::coroutine;
use crate::future_request::{Starter, start_future};
use crate::identity::{Id, RuntimeFlavor};
use crate::observe::{self, RuntimeSnapshot};
use crate::runtime::{Runtime, Shared};
use crate::simulator::Simulator;
#[cfg(feature = "tracing")]
use crate::task_span;
use crate::time::Instant;

/// A reference to a runtime: spawns, snapshots, `block_on`. Cheap to clone; may outlive the
/// runtime, and then every spawn resolves with `Cancelled`.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

thread_local! {
    static ENTERED: RefCell<EnteredStack> = const { RefCell::new(EnteredStack::new()) };
    static ENTRIES: Cell<u64> = const { Cell::new(0) };
}

/// The runtimes that the code of this thread has entered, the latest last.
struct EnteredStack {
    entries: Vec<EnteredRuntime>,
    /// For each coroutine that runs on this thread (one resumes another), where its own entries
    /// begin.
    floors: Vec<usize>,
    /// Guards that were dropped while their entry was with a suspended coroutine.
    gone: Vec<u64>,
}

impl EnteredStack {
    const fn new() -> EnteredStack {
        EnteredStack {
            entries: Vec::new(),
            floors: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn current(&self) -> Option<&Handle> {
        self.entries.last().map(|entered| &entered.handle)
    }

    /// The guard of this number is dropped, on whatever stack: only its own runtime is left.
    fn leave(&mut self, number: u64) -> Option<EnteredRuntime> {
        let index = self.entries.iter().rposition(|own| own.number == number);
        let Some(index) = index else {
            self.gone.push(number);
            return None;
        };
        for floor in &mut self.floors {
            *floor -= usize::from(*floor > index);
        }
        Some(self.entries.remove(index))
    }

    /// A coroutine goes on, with the runtimes that it has entered; gives those whose guards are
    /// gone.
    fn begin_resume(&mut self, own: Vec<EnteredRuntime>) -> Vec<EnteredRuntime> {
        self.floors.push(self.entries.len());
        if self.gone.is_empty() {
            self.entries.extend(own);
            return Vec::new();
        }
        let (left, kept): (Vec<_>, Vec<_>) = own
            .into_iter()
            .partition(|own| self.gone.contains(&own.number));
        self.gone
            .retain(|number| left.iter().all(|own| own.number != *number));
        self.entries.extend(kept);
        left
    }

    /// The coroutine was suspended: the runtimes that it has entered are not entered by the code
    /// that runs next.
    fn end_resume(&mut self) -> Vec<EnteredRuntime> {
        match self.floors.pop() {
            Some(floor) => self.entries.split_off(floor),
            None => Vec::new(),
        }
    }
}

/// A runtime that this thread has entered.
pub(crate) struct EnteredRuntime {
    /// Which guard it belongs to.
    number: u64,
    handle: Handle,
}

/// Runs `switch`, which goes over to a coroutine on a thread that is no worker and comes back, with
/// the runtimes that the coroutine has entered (`own`) on top of those of the thread.
pub(crate) fn with_entered<R>(own: &Cell<Vec<EnteredRuntime>>, switch: impl FnOnce() -> R) -> R {
    // A thread that ends has left every runtime. Handles are dropped when nothing is borrowed.
    let left = ENTERED.try_with(|entered| entered.borrow_mut().begin_resume(own.take()));
    drop(left);
    let result = switch();
    let taken = ENTERED.try_with(|entered| entered.borrow_mut().end_resume());
    own.set(taken.unwrap_or_default());
    result
}

/// This thread is in no runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TryCurrentError {
    _private: (),
}

impl TryCurrentError {
    const NEW: TryCurrentError = TryCurrentError { _private: () };

    /// Returns true: the thread is in no runtime.
    pub fn is_missing_context(&self) -> bool {
        true
    }

    /// Returns false: a thread that ends has left every runtime.
    pub fn is_thread_local_destroyed(&self) -> bool {
        false
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this thread is in no runtime; use Runtime::block_on, Handle::enter or a task")
    }
}

impl std::error::Error for TryCurrentError {}

// A handle holds no value of the program that a panic could leave half changed.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

/// `try_spawn` did not take the task; the future is handed back.
pub enum TrySpawnError<F> {
    /// The injector is at its capacity: try again later, or use `spawn`.
    Full(F),
    /// The runtime is shutting down.
    Stopping(F),
}

impl<F> TrySpawnError<F> {
    /// The future that was not spawned.
    pub fn into_inner(self) -> F {
        match self {
            TrySpawnError::Full(future) | TrySpawnError::Stopping(future) => future,
        }
    }
}

impl<F> fmt::Debug for TrySpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySpawnError::Full(_) => "Full",
            TrySpawnError::Stopping(_) => "Stopping",
        })
    }
}

impl<F> fmt::Display for TrySpawnError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TrySpawnError::Full(_) => "the injector is full; try again later, or use spawn",
            TrySpawnError::Stopping(_) => "the runtime is shutting down",
        })
    }
}

impl<F> std::error::Error for TrySpawnError<F> {}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Handle {
        Handle(shared)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// The runtime this thread is in: the one whose worker it is, or the one it has entered.
    pub fn try_current() -> Result<Handle, TryCurrentError> {
        if let Some(pool) = pool::current()
            && let Some(shared) = pool.attachment()
            && let Ok(shared) = shared.downcast::<Shared>()
        {
            return Ok(Handle(shared));
        }
        // A thread that ends has left every runtime.
        let entered = ENTERED.try_with(|entered| entered.borrow().current().cloned());
        entered.ok().flatten().ok_or(TryCurrentError::NEW)
    }

    /// The runtime this thread is in.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn current() -> Handle {
        match Handle::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// The runtime this thread is in, or else the process-wide default, which is made on first use
    /// and lives as long as the program.
    ///
    /// # Panics
    /// If the default has to be made and its threads cannot be started.
    pub fn current_or_default() -> Handle {
        Handle::try_current().unwrap_or_else(|_| Handle::process_wide().clone())
    }

    /// The process-wide default.
    pub(crate) fn process_wide() -> &'static Handle {
        static DEFAULT: OnceLock<Handle> = OnceLock::new();
        DEFAULT.get_or_init(
            || match Builder::default().name("windlass-default").build() {
                Ok(runtime) => {
                    let handle = runtime.handle().clone();
                    std::mem::forget::<Runtime>(runtime);
                    handle
                }
                Err(error) => panic!("the default runtime could not be built: {error}"),
            },
        )
    }

    pub(crate) fn pool(&self) -> &Pool {
        self.0.process.check();
        &self.0.pool
    }

    /// Starts a task.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_with(future, Options::here())
    }

    pub(crate) fn spawn_with<F>(&self, future: F, options: Options) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        start_future(future, options, self)
    }

    /// Starts a task unless the injector is full or the runtime is shutting down.
    #[track_caller]
    pub fn try_spawn<F>(&self, future: F) -> Result<JoinHandle<F::Output>, TrySpawnError<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.try_spawn_with(future, Options::here())
    }

    pub(crate) fn try_spawn_with<F>(
        &self,
        future: F,
        options: Options,
    ) -> Result<JoinHandle<F::Output>, TrySpawnError<F>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Err(error) = self.pool().admit() else {
            return Ok(self.spawn_with(future, options));
        };
        #[cfg(feature = "tracing")]
        task_span::report_refusal(&options);
        Err(match error {
            AdmissionError::Full => TrySpawnError::Full(future),
            AdmissionError::Stopping => TrySpawnError::Stopping(future),
        })
    }

    /// Runs a closure that may block on a thread of its own kind.
    ///
    /// # Panics
    /// If there is no blocking thread and none can be started; see
    /// [`try_spawn_blocking`](Handle::try_spawn_blocking).
    #[track_caller]
    pub fn spawn_blocking<T, F>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match self.spawn_blocking_with(f, Options::here(), None) {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// Runs a closure as `spawn_blocking` does, and fails if no thread can be started.
    #[track_caller]
    pub fn try_spawn_blocking<T, F>(&self, f: F) -> Result<JoinHandle<T>, SpawnBlockingError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_blocking_with(f, Options::here(), None)
    }

    pub(crate) fn spawn_blocking_with<T, F>(
        &self,
        f: F,
        options: Options,
        start_within: Option<Duration>,
    ) -> Result<JoinHandle<T>, SpawnBlockingError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.0.process.check();
        let Some(simulator) = self.0.simulator() else {
            return self.0.blocking.spawn(self, f, options, start_within);
        };
        let start_by = start_within.map(|limit| (Instant::now() + limit).nanos());
        let (job, handle) = Job::new(f, 0, options);
        simulator.spawn_blocking(self, job, start_by);
        Ok(handle)
    }

    /// Runs `future` on this thread, which sleeps while it is pending. Inside, `spawn` finds this
    /// runtime. In a coroutine it is [`coroutine::wait`](crate::coroutine::wait).
    ///
    /// # Panics
    /// Inside a task that is a future or another `block_on`.
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.0.process.check();
        if coroutine::is_inside() {
            // A guard would be left behind for others on this thread.
            return coroutine::wait(future);
        }
        let _entered = self.enter();
        match self.0.simulator() {
            Some(simulator) => simulator.block_on(future),
            None => windlass_core::block_on(future),
        }
    }

    /// Makes this runtime the one that `spawn` finds on this thread, until the guard is dropped. In
    /// the destructors of a thread that ends it has no effect.
    pub fn enter(&self) -> EnterGuard {
        let number = ENTRIES.with(|entries| entries.replace(entries.get() + 1));
        let handle = self.clone();
        let entry = EnteredRuntime { number, handle };
        let _ = ENTERED.try_with(|entered| entered.borrow_mut().entries.push(entry));
        EnterGuard {
            number,
            set: None,
            thread: PhantomData,
        }
    }

    /// Returns the kind of the runtime.
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        self.0.identity.flavor
    }

    /// Returns what tells the runtime from others of the process.
    pub fn id(&self) -> Id {
        self.0.identity.id
    }

    /// Returns the name that [`Builder::name`] gave to the runtime, if it did.
    pub fn name(&self) -> Option<&str> {
        self.0.identity.name.as_deref()
    }

    /// Returns everything the runtime and its front ends count, and the first entities of each, as
    /// plain data.
    pub fn snapshot(&self) -> RuntimeSnapshot {
        observe::snapshot(&self.0)
    }

    /// Writes a [`snapshot`](Handle::snapshot) and the latest events, for people.
    pub fn debug_dump(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        observe::dump(&self.snapshot(), &self.0.pool.events(), out)
    }

    /// Tasks of a simulation that panicked and whose handle was not awaited, in words.
    pub(crate) fn unobserved_panics(&self) -> Vec<String> {
        let simulator = self.0.simulator();
        simulator.map_or_else(Vec::new, |simulator| simulator.world().unobserved_panics())
    }

    /// True on a worker or blocking thread of this runtime.
    pub(crate) fn is_own_thread(&self) -> bool {
        let helper = |simulator: &Arc<Simulator>| simulator.is_own_thread();
        self.0.pool.is_current()
            || self.0.blocking.is_current()
            || self.0.private_pools().iter().any(|pool| pool.is_current())
            || self.0.simulator().is_some_and(helper)
    }
}

/// Leaves the runtime again when dropped, also if guards are dropped in another order than the
/// reverse one of entering.
#[derive(Debug)]
#[must_use = "the runtime is left when the guard is dropped"]
pub struct EnterGuard {
    number: u64,
    /// The local set that the thread is inside of, too.
    set: Option<LocalEnterGuard>,
    /// `!Send`: it belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl EnterGuard {
    /// The thread leaves the set together with the runtime.
    pub(crate) fn with_set(mut self, set: LocalEnterGuard) -> EnterGuard {
        self.set = Some(set);
        self
    }
}

impl Drop for EnterGuard {
    fn drop(&mut self) {
        // The handle is dropped when nothing is borrowed.
        let left = ENTERED.try_with(|entered| entered.borrow_mut().leave(self.number));
        drop(left);
    }
}

/// Starts a task on the runtime this thread is in, or else on the process-wide default.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    start_future(future, Options::here(), Here)
}

impl Starter for &Handle {
    #[inline]
    fn start<B>(self, request: SpawnRequest<B>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.spawn_request(request)
    }
}

/// The runtime this thread is in, or else the process-wide default.
struct Here;

impl Starter for Here {
    #[inline]
    fn start<B>(self, request: SpawnRequest<B>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        spawn_request(request)
    }
}

/// Starts a body of any kind on the runtime this thread is in, or else on the process-wide default.
#[inline]
pub(crate) fn spawn_request<B>(request: SpawnRequest<B>) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
{
    pool::spawn_here_or(request, spawn_outside)
}

/// Starts a task on a thread that is no worker.
#[inline]
fn spawn_outside<B>(request: SpawnRequest<B>) -> JoinHandle<B::Output>
where
    B: Body + Send + 'static,
    B::Output: Send + 'static,
{
    let mut request = Some(request);
    let spawned = ENTERED.try_with(|entered| {
        let entered = entered.borrow();
        let runtime = entered.current()?;
        Some(runtime.pool().spawn_from_outside(request.take()?))
    });
    match (spawned, request) {
        // Only now, when nothing is borrowed any more: a refused future's destructor may enter a
        // runtime itself.
        (Ok(Some((handle, refused))), _) => {
            drop(refused);
            handle
        }
        (_, Some(request)) => Handle::current_or_default().spawn_request(request),
        (_, None) => unreachable!("what was taken was spawned"),
    }
}

/// Runs a closure that may block on the runtime this thread is in, or else on the process-wide
/// default.
///
/// # Panics
/// If there is no blocking thread and none can be started.
#[track_caller]
pub fn spawn_blocking<T, F>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match Handle::current_or_default().spawn_blocking_with(f, Options::here(), None) {
        Ok(handle) => handle,
        Err(error) => panic!("{error}"),
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.0.pool).finish()
    }
}

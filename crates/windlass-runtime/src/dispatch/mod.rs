//! Dispatchers: where work runs.
//!
//! | dispatcher | threads | for |
//! |---|---|---|
//! | [`Dispatcher::default`] | the runtime's workers | nearly everything |
//! | [`Dispatcher::io`] | up to 64 that come and go | tasks that block now and then |
//! | [`Dispatcher::custom`] | as many of its own as you say | work that must not share with others |
//! | [`Dispatcher::single`] | one of its own | strictly one after another, in order |
//! | [`Dispatcher::unconfined`] | none | continuations that are not worth a switch |
//!
//! A task goes on on its own dispatcher, whatever wakes it. What it spawns runs there too. Only an
//! unconfined one goes on where it was woken.
//!
//! ```
//! use windlass_runtime::{Runtime, dispatch::{Dispatcher, with_dispatcher}};
//!
//! let runtime = Runtime::new()?;
//! let text = runtime.block_on(async {
//!     // A section that blocks, on a thread where that hurts no other task.
//!     with_dispatcher(&Dispatcher::io(), async { std::fs::read_to_string("Cargo.toml") }).await
//! })?;
//! assert!(text?.contains("[package]"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod guarded;
mod io;
mod memory;
mod own_thread;
mod private;
mod serial;
mod unconfined;
mod unconfined_tasks;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use windlass_core::observe::{Event, PoolSnapshot};
use windlass_core::task::{
    BeforeFirstPoll, Body, Class, JoinError, JoinHandle, Name, Options, SpawnRequest,
};

use self::serial::Serial;
use crate::coroutine;
use crate::future_request::{Starter, start_future};
use crate::handle::Handle;

pub use self::attributes::{AttributeError, Attributes, OnRefusal, Scheduling};
pub(crate) use self::io::IoDispatcher;
pub use self::memory::{MemoryLock, lock_memory};
pub use self::own_thread::OwnThread;
pub(crate) use self::private::PrivatePool;
pub use self::private::{Builder, DispatcherError};
pub(crate) use self::unconfined_tasks::UnconfinedTasks;

/// Says where work runs. Cheap to clone.
///
/// A private pool ([`custom`](Dispatcher::custom), [`single`](Dispatcher::single)) ends with the
/// last of its handles: its tasks are cancelled and its threads joined; if that handle is dropped
/// on one of these very threads, another thread joins them.
#[derive(Clone)]
pub struct Dispatcher {
    kind: Kind,
    class: Class,
}

#[derive(Clone)]
enum Kind {
    Default(Handle),
    Io(Handle),
    Private(Arc<PrivatePool>),
    /// A single thread in a simulation.
    Serial(Serial),
    Unconfined(Handle),
}

/// A dispatcher at one moment.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DispatcherSnapshot {
    /// The name of the dispatcher.
    pub name: String,
    /// The dispatcher's own pool, if it has one.
    pub pool: Option<PoolSnapshot>,
    /// Polls that its watchdog found to be slow.
    pub slow_polls: u64,
    /// What its threads were found to have, each line of which was read back from the system.
    pub attributes: Vec<Attributes>,
}

/// The workers of the runtime this thread is in, or else of the process-wide default.
impl Default for Dispatcher {
    fn default() -> Self {
        Dispatcher::of(Kind::Default(Handle::current_or_default()))
    }
}

impl Dispatcher {
    fn of(kind: Kind) -> Dispatcher {
        Dispatcher {
            kind,
            class: Class::Normal,
        }
    }

    /// The workers of `runtime`.
    pub fn default_of(runtime: &Handle) -> Dispatcher {
        Dispatcher::of(Kind::Default(runtime.clone()))
    }

    /// Threads that may block, of the runtime this thread is in or else of the process-wide
    /// default: as many as there are turns to give, up to a limit (`Builder::max_io_threads`), and
    /// none when there is nothing to do.
    pub fn io() -> Dispatcher {
        Dispatcher::io_of(&Handle::current_or_default())
    }

    /// Returns the io dispatcher of `runtime`.
    pub fn io_of(runtime: &Handle) -> Dispatcher {
        Dispatcher::of(Kind::Io(runtime.clone()))
    }

    /// A pool of its own with this many workers.
    pub fn custom(workers: usize) -> Result<Dispatcher, DispatcherError> {
        Builder::new(workers).build()
    }

    /// A thread of its own that does one thing after another, in the order in which it was asked
    /// to.
    pub fn single() -> Result<Dispatcher, DispatcherError> {
        Builder::single().build()
    }

    /// A pool of its own with a name and what else there is to say.
    pub fn builder(workers: usize) -> Builder {
        Builder::new(workers)
    }

    /// No thread at all: a task runs inside `spawn` until it first suspends, and then wherever it
    /// is woken (on the workers of the waker's pool, or of the default if that is no worker), never
    /// inside `wake`.
    pub fn unconfined() -> Dispatcher {
        Dispatcher::of(Kind::Unconfined(Handle::current_or_default()))
    }

    /// Returns the same dispatcher, whose tasks are of this class unless they say otherwise.
    /// Classes count on pools; `io`, `single` and `unconfined` have none.
    pub fn with_class(mut self, class: Class) -> Dispatcher {
        self.class = class;
        self
    }

    /// Returns the name of the dispatcher.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Default(_) => "default",
            Kind::Io(_) => "io",
            Kind::Private(pool) => pool.name(),
            Kind::Serial(_) => "single",
            Kind::Unconfined(_) => "unconfined",
        }
    }

    /// Starts a task here.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_future(future, self.options(None), None)
    }

    /// Starts a task here, with a name.
    #[track_caller]
    pub fn spawn_named<F>(&self, name: impl Into<Name>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_future(future, self.options(Some(name.into())), None)
    }

    /// Starts a task as `spawn` does; on `io`, a task whose first turn does not come within `limit`
    /// is not run, and its handle resolves with `Expired`.
    #[track_caller]
    pub fn spawn_within<F>(&self, limit: Duration, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_future(future, self.options(None), Some(limit))
    }

    /// Starts a coroutine here; on the default dispatcher if this is the unconfined one, because a
    /// coroutine stays on a thread.
    #[track_caller]
    pub fn spawn_coroutine<T, F>(&self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        coroutine::Builder::new()
            .class(self.class)
            .spawn_at(self, f)
    }

    #[track_caller]
    fn options(&self, name: Option<Name>) -> Options {
        Options {
            name,
            class: self.class,
            ..Options::here()
        }
    }

    fn spawn_future<F>(
        &self,
        future: F,
        options: Options,
        start_within: Option<Duration>,
    ) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let starter = LimitedStart {
            dispatcher: self,
            start_within,
        };
        start_future(future, options, starter)
    }

    /// Starts a body that must stay on a thread once it has begun.
    pub(crate) fn spawn_staying<B>(&self, request: SpawnRequest<B>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        match &self.kind {
            Kind::Unconfined(runtime) => runtime.spawn_request(request),
            _ => self.start(request, None),
        }
    }

    /// Starts a task with a body of any kind here, for front ends.
    pub fn spawn_request<B, H>(&self, request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        self.start(request, None)
    }

    fn start<B, H>(
        &self,
        request: SpawnRequest<B, H>,
        start_within: Option<Duration>,
    ) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
        H: BeforeFirstPoll,
    {
        match &self.kind {
            Kind::Default(runtime) => runtime.spawn_request(request),
            Kind::Private(pool) => pool.spawn(request),
            Kind::Serial(serial) => serial.spawn(request),
            Kind::Io(runtime) => io::spawn(runtime, request, start_within),
            Kind::Unconfined(runtime) => unconfined::spawn(runtime, request),
        }
    }

    /// The class of its tasks, unless they say otherwise.
    pub fn class(&self) -> Class {
        self.class
    }

    /// True on one of its threads; never for the unconfined one.
    pub fn is_current(&self) -> bool {
        match &self.kind {
            Kind::Default(runtime) => runtime.shared().pool.is_current(),
            Kind::Io(runtime) => runtime.shared().blocking.is_current(),
            Kind::Private(pool) => pool.is_current(),
            Kind::Serial(_) | Kind::Unconfined(_) => false,
        }
    }

    /// The events that the flight recorders of its own pool still hold, oldest first.
    pub fn events(&self) -> Vec<Event> {
        match &self.kind {
            Kind::Default(runtime) => runtime.shared().pool.events(),
            Kind::Private(pool) => pool.events(),
            Kind::Io(_) | Kind::Serial(_) | Kind::Unconfined(_) => Vec::new(),
        }
    }

    /// What it counts, as plain data. `io` is in the runtime's snapshot, under `blocking`.
    pub fn snapshot(&self) -> DispatcherSnapshot {
        let pool = match &self.kind {
            Kind::Default(runtime) => Some(runtime.shared().pool.snapshot()),
            Kind::Private(pool) => return pool.snapshot(),
            Kind::Io(_) | Kind::Serial(_) | Kind::Unconfined(_) => None,
        };
        let slow_polls = match &self.kind {
            Kind::Default(runtime) => runtime.shared().pool.slow_polls(),
            _ => 0,
        };
        DispatcherSnapshot {
            name: self.name().to_owned(),
            pool,
            slow_polls,
            attributes: Vec::new(),
        }
    }
}

/// A dispatcher, with the time within which a task has to start on a blocking thread.
struct LimitedStart<'a> {
    dispatcher: &'a Dispatcher,
    start_within: Option<Duration>,
}

impl Starter for LimitedStart<'_> {
    #[inline]
    fn start<B>(self, request: SpawnRequest<B>) -> JoinHandle<B::Output>
    where
        B: Body + Send + 'static,
        B::Output: Send + 'static,
    {
        self.dispatcher.start(request, self.start_within)
    }
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Dispatcher").field(&self.name()).finish()
    }
}

/// Runs `future` on `dispatcher` and comes back with its output. If this is dropped before, the
/// section is aborted.
///
/// On a thread of that dispatcher it does not move at all.
///
/// ```
/// use windlass_runtime::{Runtime, dispatch::{Dispatcher, with_dispatcher}};
///
/// let runtime = Runtime::new()?;
/// let single = Dispatcher::single()?;
/// let there = runtime.block_on(async {
///     with_dispatcher(&single, async { std::thread::current().name().map(str::to_owned) }).await
/// })?;
/// assert!(there.is_some_and(|name| name.starts_with("windlass-single")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn with_dispatcher<F>(dispatcher: &Dispatcher, future: F) -> WithDispatcher<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    WithDispatcher {
        dispatcher: dispatcher.clone(),
        section: Section::NotYet(Some(future)),
    }
}

/// The future of [`with_dispatcher`].
#[must_use = "futures do nothing unless awaited"]
pub struct WithDispatcher<F: Future> {
    /// Kept until the section has ended, so that its pool is there.
    dispatcher: Dispatcher,
    section: Section<F>,
}

enum Section<F: Future> {
    NotYet(Option<F>),
    Here(Pin<Box<F>>),
    There(JoinHandle<F::Output>),
}

// The future is boxed before it is pinned.
impl<F: Future> Unpin for WithDispatcher<F> {}

impl<F> Future for WithDispatcher<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = Result<F::Output, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Section::NotYet(future) = &mut self.section
            && let Some(future) = future.take()
        {
            self.section = if self.dispatcher.is_current() {
                Section::Here(Box::pin(future))
            } else {
                Section::There(self.dispatcher.spawn(future))
            };
        }
        match &mut self.section {
            Section::Here(future) => future.as_mut().poll(cx).map(Ok),
            Section::There(handle) => Pin::new(handle).poll(cx),
            Section::NotYet(_) => panic!("a section that has ended was polled again"),
        }
    }
}

impl<F: Future> Drop for WithDispatcher<F> {
    fn drop(&mut self) {
        if let Section::There(handle) = &self.section {
            handle.abort();
        }
    }
}

impl<F: Future> fmt::Debug for WithDispatcher<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithDispatcher")
            .field("dispatcher", &self.dispatcher)
            .finish_non_exhaustive()
    }
}

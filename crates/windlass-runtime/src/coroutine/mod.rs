//! Stackful coroutines: plain blocking-style code that waits without blocking its thread.
//!
//! ```
//! use std::time::Duration;
//! use windlass_runtime::{Runtime, coroutine, time};
//! use windlass_sync::channel;
//!
//! fn add_up(numbers: channel::mpmc::Receiver<u32>) -> u32 {
//!     let mut sum = 0;
//!     // An ordinary loop in an ordinary function; `wait` suspends the coroutine, not the worker.
//!     while let Some(number) = coroutine::wait(numbers.recv()) {
//!         sum += number;
//!     }
//!     sum
//! }
//!
//! let runtime = Runtime::new()?;
//! let _entered = runtime.enter();
//! let (sender, numbers) = channel::mpmc::buffered(1);
//! let sum = coroutine::spawn(move || add_up(numbers));
//! coroutine::spawn(move || {
//!     for number in 1..=4 {
//!         coroutine::wait(time::sleep(Duration::from_millis(1)));
//!         coroutine::wait(sender.send(number)).expect("the receiver listens");
//!     }
//! });
//! assert_eq!(coroutine::wait(sum)?, 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! Any future can be waited for, and a coroutine's handle is the same [`JoinHandle`] as a task's:
//! join it from a future, from another coroutine or from a plain thread.
//!
//! A coroutine can be stolen until it starts; then it stays on its worker, because its stack may
//! hold what belongs to the thread. When it is cancelled, the wait it is in unwinds (with
//! [`Cancelled`] as the payload, and no panic hook), and so does each later one: destructors run,
//! on its own stack. See `docs/coroutines.md` for the rules.

mod body;
mod by_hand;
mod check;
mod foreign;
mod frame;
mod leak;
mod overflow;
mod parking;
mod sanitizer;
mod scope;
mod slab;
mod stack;

use std::future::Future;

use windlass_core::context;
use windlass_core::executor::local_set::spawn_local_request;
use windlass_core::sync::thread;
use windlass_core::task::{Class, Header, JoinHandle, Options, SpawnRequest};

use self::body::{CoroutineBody, RawCoroutine};
use self::slab::SizeClass;
use self::stack::Stack;
use crate::dispatch::Dispatcher;
use crate::handle::{Handle, spawn_request};

pub use self::by_hand::{Coroutine, CoroutineState, Driver, Finish, drive};
pub use self::foreign::foreign;
pub use self::leak::LeakedCoroutine;
pub use self::overflow::report_overflows;
pub use self::parking::{CoroutineRef, current, park};
pub use self::scope::{Scope, ScopeError, ScopedJoinHandle, scope};
pub use self::slab::StackError;
pub(crate) use self::slab::{count_stacks_in_use, next_stack_in_use};
pub(crate) use self::stack::on_fresh_stack;

/// With this a cancelled coroutine unwinds. Code that catches it (`catch_unwind`) gets it again at
/// the next suspension point.
pub use windlass_core::task::Unwound as Cancelled;

/// The usable size of a stack by default.
const DEFAULT_STACK: usize = 64 << 10;

/// Starts a coroutine on the runtime this thread is in, or else on the process-wide default.
///
/// It has a stack of 64 KiB; see [`Builder::stack_size`].
#[track_caller]
pub fn spawn<T, F>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f)
}

/// Starts a coroutine on the local set that is being run on this thread: it may hold what is not
/// `Send`. It goes on inside of any [`block_on`](windlass_core::block_on) of this thread, or of a
/// runtime's task: elsewhere its handle resolves with a panic that says so.
///
/// # Panics
/// Outside of a local set.
#[track_caller]
pub fn spawn_local<T, F>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    Builder::new().spawn_local(f)
}

/// Starts a coroutine that any worker may go on with after each suspension.
///
/// # Safety
/// Over a suspension point nothing on its stack may belong to a thread: no reference to a
/// thread-local, no `Rc`, no lock guard of the standard library, nothing else that is not `Send`.
/// That includes what the compiler keeps there: functions that use a thread-local both before and
/// after a suspension point may see the old thread's. Nor may it be suspended inside of a closure
/// that it has given to [`fork_join`](crate::fork_join): that belongs to a worker.
#[track_caller]
pub unsafe fn spawn_migrating<T, F>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    // SAFETY: passed on.
    unsafe { Builder::new().spawn_migrating(f) }
}

/// Waits for a future: a coroutine is suspended meanwhile, a plain thread sleeps.
///
/// In a coroutine that is cancelled this unwinds, before it polls the future and whenever it is
/// resumed. While the thread is unwinding (in a destructor), it blocks the thread instead.
///
/// # Panics
/// Inside a task that is a future: await it there.
#[inline]
#[track_caller]
pub fn wait<F: Future>(future: F) -> F::Output {
    match frame::running() {
        Some(frame) => frame.wait(future),
        None => windlass_core::block_on(future),
    }
}

/// Gives every other ready task a turn; a plain thread gives its core away.
#[inline]
pub fn yield_now() {
    match frame::running() {
        Some(frame) => frame.yield_now(),
        None => thread::yield_now(),
    }
}

/// True inside a coroutine.
pub fn is_inside() -> bool {
    frame::running().is_some()
}

/// True inside a coroutine that has been cancelled: its next wait unwinds.
pub fn is_cancelled() -> bool {
    frame::running().is_some_and(|frame| frame.is_cancelled())
}

/// Starts coroutines with a name, a class, or a stack of another size.
///
/// ```
/// use windlass_runtime::{Runtime, coroutine};
///
/// fn depth(left: u32) -> u32 {
///     if left == 0 { 0 } else { 1 + depth(left - 1) }
/// }
///
/// let runtime = Runtime::new()?;
/// let deep = coroutine::Builder::new()
///     .name("deep")
///     .stack_size(4 << 20)
///     .spawn_on(runtime.handle(), || depth(10_000));
/// assert_eq!(coroutine::wait(deep)?, 10_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until spawn is called"]
pub struct Builder {
    options: Options,
    stack_size: usize,
}

impl Default for Builder {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// Normal class, no name, 64 KiB of stack.
    #[track_caller]
    pub fn new() -> Builder {
        Builder {
            options: Options::here(),
            stack_size: DEFAULT_STACK,
        }
    }

    /// A name for dumps, traces and stall reports, and for the message when its stack overflows.
    pub fn name(mut self, name: impl AsRef<str>) -> Self {
        self.options.name = Some(name.as_ref().into());
        self
    }

    /// The priority class. Once it has started a coroutine is run by its own worker only, in turn
    /// with everything else there; one of the high class comes first among them.
    pub fn class(mut self, class: Class) -> Self {
        self.options.class = class;
        self
    }

    /// Usable bytes of its stack, rounded up to a power of two of at least 16 KiB. Only what is
    /// touched takes memory.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }

    /// Starts a coroutine on the runtime this thread is in, or else on the process-wide default.
    ///
    /// Its stack is made when it first runs. If there is none, the handle resolves like that of a
    /// coroutine that panicked with a [`StackError`]; [`try_spawn`](Builder::try_spawn) tells at
    /// once.
    pub fn spawn<T, F>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn_request(self.request(f, false))
    }

    /// Starts a coroutine on `handle`'s runtime.
    pub fn spawn_on<T, F>(self, handle: &Handle, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        handle.spawn_request(self.request(f, false))
    }

    /// Starts a coroutine on a dispatcher; on the default one instead of the unconfined one,
    /// because a coroutine stays on a thread, and that has none.
    pub fn spawn_at<T, F>(self, dispatcher: &Dispatcher, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        dispatcher.spawn_staying(self.request(f, false))
    }

    /// Starts a coroutine as `spawn` does, but takes the stack now and fails if there is none.
    pub fn try_spawn<T, F>(self, f: F) -> Result<JoinHandle<T>, StackError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let size = SizeClass::for_size(self.stack_size)?;
        let raw = RawCoroutine::new(f, size, Some(Stack::take(size)?));
        let body = CoroutineBody::new(raw, false, &self.options);
        Ok(spawn_request(SpawnRequest::new(body, self.options)))
    }

    /// Starts a coroutine on the local set of this thread, as [`spawn_local`] does.
    ///
    /// # Panics
    /// Outside of a local set.
    #[track_caller]
    pub fn spawn_local<T, F>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        spawn_local_request(self.request(f, false))
    }

    /// Starts a coroutine that may change its thread, as [`spawn_migrating`] does.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn spawn_migrating<T, F>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        spawn_request(self.request(f, true))
    }

    /// The coroutine as a request. Its stack is made when it first runs.
    fn request<T, F: FnOnce() -> T>(
        self,
        f: F,
        migrates: bool,
    ) -> SpawnRequest<CoroutineBody<F, T>> {
        let raw = match SizeClass::for_size(self.stack_size) {
            Ok(size) => RawCoroutine::new(f, size, None),
            Err(error) => panic!("{error}"),
        };
        let body = CoroutineBody::new(raw, migrates, &self.options);
        SpawnRequest::new(body, self.options)
    }
}

/// A coroutine in words.
fn describe(task: &Header) -> String {
    let name = task.meta().name().map_or("(unnamed)", |name| name);
    format!("{name}, spawned at {}", task.meta().location())
}

/// Refuses what has to wait where it stands and cannot: inside a future, and in a destructor that
/// runs while the thread unwinds inside a `block_on`. Before anything is started, because
/// afterwards nothing may unwind.
#[track_caller]
fn refuse_in_future(what: &str) {
    let is_inside = is_inside();
    assert!(
        is_inside || !context::in_task(),
        "{what} inside a task that is a future would block its worker: use it in a coroutine \
         (coroutine::spawn), or in spawn_blocking"
    );
    assert!(
        (is_inside && !thread::panicking()) || !windlass_core::is_waiting(),
        "{what} inside the future of a block_on would block it: use it in a coroutine \
         (coroutine::spawn(..).await), or in spawn_blocking"
    );
}

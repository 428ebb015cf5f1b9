//! Coroutines that borrow from the code that starts them.
//!
//! A scope is a function, not a guard: a guard can be forgotten. It does not return, and does not
//! unwind, before every child has ended, which means that the child's closure, its frames and its
//! result (unless a handle has it) are gone. Rules that the `unsafe` block relies on:
//!
//! 1. A child counts as running from before its closure is handed on until after its closure and
//!    everything in it is dropped (the order of `Child`'s fields, and of the end of `run`).
//! 2. `scope` waits for that count, whatever happens: it catches the panic or the cancellation of
//!    its own code and resumes it afterwards, and its last wait is shielded. Where it could not
//!    wait it refuses to begin. Should the last wait panic all the same, the process ends
//!    (`NoUnwind`).
//! 3. A child that is leaked never counts as ended, so the scope above it never returns: it is
//!    leaked too, with the frames that are borrowed (rule 6 of `frame.rs`).
//! 4. A result stays in its packet, which the child drops before it counts as ended; who else may
//!    hold one is a handle, and handles do not outlive the scope (`'scope`).

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_core::task::{AbortHandle, Unwound};
use windlass_core::unwind::NoUnwind;
use windlass_core::unwind::PanicPayload;

use super::{Builder, frame, refuse_in_future, wait};
use windlass_sync::lock::Notify;

/// Runs `f`, which may start coroutines that borrow what outlives this call; returns when all of
/// them have ended.
///
/// ```
/// use windlass_runtime::{Runtime, coroutine};
///
/// let runtime = Runtime::new()?;
/// let _entered = runtime.enter();
/// let words = vec!["one".to_owned(), "three".to_owned()];
/// let longest = coroutine::spawn(move || {
///     coroutine::scope(|s| {
///         let handles: Vec<_> = words.iter().map(|word| s.spawn(|| word.len())).collect();
///         handles.into_iter().map(|handle| handle.join().expect("no panic")).max()
///     })
/// });
/// assert_eq!(coroutine::wait(longest)?, Some(5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// In a coroutine the wait suspends it; on a plain thread it blocks. If `f` panics, or the
/// coroutine is cancelled meanwhile, the children are cancelled, and the panic or cancellation goes
/// on after they have ended. The panic of a child goes to its handle; if that is not joined, it
/// comes out of `scope`.
///
/// # Panics
/// As said; and, before `f` is called, inside a future (of a task, or of a `block_on`), which it
/// would block.
///
/// What is borrowed must outlive the scope:
///
/// ```compile_fail,E0597
/// use windlass_runtime::coroutine;
///
/// coroutine::scope(|s| {
///     let inside = String::new();
///     s.spawn(|| inside.len());
/// });
/// ```
/// and a handle cannot leave it:
///
/// ```compile_fail
/// use windlass_runtime::coroutine;
///
/// let handle = coroutine::scope(|s| s.spawn(|| 1));
/// ```
/// What children share must be shareable:
///
/// ```compile_fail,E0277
/// use windlass_runtime::coroutine;
///
/// let cell = std::cell::Cell::new(0);
/// coroutine::scope(|s| {
///     s.spawn(|| cell.set(1));
/// });
/// ```
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    refuse_in_future("coroutine::scope");
    let scope = Scope {
        children: Arc::default(),
        scope: PhantomData,
        env: PhantomData,
    };
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let output = f(&scope);
        // Raises if this coroutine is cancelled.
        wait(scope.children.ended());
        output
    }));
    if ended.is_err() {
        scope.children.cancel();
    }
    scope.children.wait_for_the_end();
    match ended {
        Err(payload) => resume_unwind(payload),
        Ok(output) => match scope.children.take_panic() {
            Some(payload) => {
                drop(output);
                resume_unwind(payload)
            }
            None => output,
        },
    }
}

/// Starts coroutines that may borrow; see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    children: Arc<Children>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a coroutine that ends before the scope does.
    #[track_caller]
    pub fn spawn<T, F>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.spawn_with(Builder::new(), f)
    }

    /// Starts a child as `spawn` does, with a name, a class or a stack size.
    pub fn spawn_with<T, F>(&'scope self, builder: Builder, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let packet = Arc::new(Packet::default());
        let child = Child {
            f: Some(f),
            packet: Some(packet.clone()),
            running: Running::new(&self.children),
        };
        let number = child.running.number;
        let run: Box<dyn FnOnce() + Send + 'scope> = Box::new(move || child.run());
        // SAFETY: rules 1 to 4: nothing of the closure is left when `scope` returns or unwinds.
        let run: Box<dyn FnOnce() + Send + 'static> = unsafe { std::mem::transmute(run) };
        let task = builder.spawn(run);
        self.children.started(number, task.abort_handle());
        ScopedJoinHandle {
            packet: Some(packet),
            children: self.children.clone(),
            abort: task.abort_handle(),
            scope: PhantomData,
        }
    }

    /// Cancels every child, also those that are started later.
    pub fn cancel(&self) {
        self.children.cancel();
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("running", &self.children.state.lock().running)
            .finish_non_exhaustive()
    }
}

/// What a scope knows of its children.
#[derive(Default)]
struct Children {
    state: Mutex<State>,
    /// The last one has ended. One permit, one waiter: the scope.
    all_ended: Notify,
}

#[derive(Default)]
struct State {
    running: usize,
    numbered: u64,
    alive: HashMap<u64, Life>,
    cancelled: bool,
    panic: Option<PanicPayload>,
}

/// A child may end before its starter has noted how to cancel it.
enum Life {
    Started(AbortHandle),
    EndedFirst,
}

impl Children {
    fn started(&self, number: u64, abort: AbortHandle) {
        let mut state = self.state.lock();
        let cancelled = state.cancelled;
        if let Some(Life::EndedFirst) = state.alive.remove(&number) {
            return;
        }
        state.alive.insert(number, Life::Started(abort.clone()));
        drop(state);
        if cancelled {
            abort.abort();
        }
    }

    fn cancel(&self) {
        let mut state = self.state.lock();
        state.cancelled = true;
        let aborts: Vec<AbortHandle> = state
            .alive
            .values()
            .filter_map(|life| match life {
                Life::Started(abort) => Some(abort.clone()),
                Life::EndedFirst => None,
            })
            .collect();
        drop(state);
        aborts.iter().for_each(AbortHandle::abort);
    }

    async fn ended(&self) {
        while self.state.lock().running > 0 {
            self.all_ended.notified().await;
        }
    }

    /// Waits for the last child. Nothing unwinds out of this.
    fn wait_for_the_end(&self) {
        let guard = NoUnwind::arm("coroutine::scope");
        let frame = frame::running();
        let shield = frame.map(|frame| frame.shield());
        let is_cancelled = || {
            let task = frame.and_then(|frame| frame.header());
            task.is_some_and(|task| task.state().is_cancelled())
        };
        let mut ended = pin!(self.ended());
        wait(poll_fn(|cx| {
            if is_cancelled() {
                self.cancel();
            }
            ended.as_mut().poll(cx)
        }));
        drop(shield);
        guard.disarm();
    }

    /// The first panic that no handle has taken.
    fn take_panic(&self) -> Option<PanicPayload> {
        self.state.lock().panic.take()
    }
}

/// Counts as a running child until it is dropped (rule 1).
struct Running {
    children: Arc<Children>,
    number: u64,
}

impl Running {
    fn new(children: &Arc<Children>) -> Running {
        let mut state = children.state.lock();
        state.running += 1;
        state.numbered += 1;
        Running {
            number: state.numbered,
            children: children.clone(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.children.state.lock();
        if state.alive.remove(&self.number).is_none() {
            state.alive.insert(self.number, Life::EndedFirst);
        }
        state.running -= 1;
        let last = state.running == 0;
        drop(state);
        if last {
            self.children.all_ended.notify_one();
        }
    }
}

/// A child that has not ended. Its fields are dropped in this order (rule 1).
struct Child<T, F: FnOnce() -> T> {
    f: Option<F>,
    packet: Option<Arc<Packet<T>>>,
    running: Running,
}

impl<T, F: FnOnce() -> T> Child<T, F> {
    fn run(mut self) {
        let Some(f) = self.f.take() else { return };
        let result = match catch_unwind(AssertUnwindSafe(f)) {
            Ok(output) => Ok(output),
            Err(payload) if payload.is::<Unwound>() => Err(ScopeError::Cancelled),
            Err(payload) => Err(ScopeError::Panicked(payload)),
        };
        self.leave(result);
    }

    /// Puts the result where the handle finds it. If there is no handle, a panic goes to the scope.
    fn leave(&mut self, result: Result<T, ScopeError>) {
        let Some(packet) = self.packet.take() else {
            return;
        };
        *packet.result.lock() = Some(result);
        packet.ready.notify_one();
        self.running.children.look_into(packet);
    }
}

impl Children {
    /// Gives up one of the two references to a packet. The last one has the result, and if that is
    /// a panic, the scope gets it.
    fn look_into<T>(&self, packet: Arc<Packet<T>>) {
        let Some(packet) = Arc::into_inner(packet) else {
            return;
        };
        let result = packet.result.lock().take();
        if let Some(Err(ScopeError::Panicked(payload))) = result {
            let mut state = self.state.lock();
            if state.panic.is_none() {
                state.panic = Some(payload);
            }
        }
    }
}

impl<T, F: FnOnce() -> T> Drop for Child<T, F> {
    fn drop(&mut self) {
        // It was cancelled before it began, unless it has run.
        let f = self.f.take();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(f)));
        self.leave(Err(match dropped {
            Ok(()) => ScopeError::Cancelled,
            Err(payload) => ScopeError::Panicked(payload),
        }));
    }
}

/// Where a child leaves its result.
struct Packet<T> {
    result: Mutex<Option<Result<T, ScopeError>>>,
    ready: Notify,
}

impl<T> Default for Packet<T> {
    fn default() -> Self {
        Packet {
            result: Mutex::new(None),
            ready: Notify::default(),
        }
    }
}

/// A child has no result.
pub enum ScopeError {
    /// The child was cancelled, or the runtime is shutting down.
    Cancelled,
    /// The child panicked with this payload.
    Panicked(Box<dyn Any + Send>),
}

impl fmt::Debug for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScopeError::Cancelled => "Cancelled",
            ScopeError::Panicked(_) => "Panicked",
        })
    }
}

impl fmt::Display for ScopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScopeError::Cancelled => "the coroutine was cancelled",
            ScopeError::Panicked(_) => "the coroutine panicked",
        })
    }
}

impl std::error::Error for ScopeError {}

/// Awaits a child of a [`scope`].
pub struct ScopedJoinHandle<'scope, T> {
    /// Until it is dropped.
    packet: Option<Arc<Packet<T>>>,
    children: Arc<Children>,
    abort: AbortHandle,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the child's end.
    pub fn join(self) -> Result<T, ScopeError> {
        let packet = self.packet();
        wait(async {
            loop {
                if let Some(result) = packet.result.lock().take() {
                    return result;
                }
                packet.ready.notified().await;
            }
        })
    }

    fn packet(&self) -> &Packet<T> {
        self.packet.as_ref().expect("there until it is dropped")
    }

    /// Asks the child to end.
    pub fn abort(&self) {
        self.abort.abort();
    }

    /// True once the child has ended.
    pub fn is_finished(&self) -> bool {
        self.packet().result.lock().is_some()
    }
}

/// The panic of a child that is not joined goes to the scope.
impl<T> Drop for ScopedJoinHandle<'_, T> {
    fn drop(&mut self) {
        if let Some(packet) = self.packet.take() {
            self.children.look_into(packet);
        }
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

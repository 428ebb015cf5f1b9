//! Waiting for a future on a plain thread.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::task::{Context, Poll, Wake, Waker};

use crate::context::{self, Barrier, RunsTasks};
use crate::sched::while_blocked;
use crate::sync::{Arc, Parker};

/// How a thread waits in `block_on`, and how it is woken.
pub trait Signal: Send + Sync + 'static {
    /// Returns after the next `wake`, or at once after an earlier one that no thread waited for.
    fn wait(&self);
    /// Ends a wait; may be called from any thread.
    fn wake(&self);
}

impl Signal for Parker {
    fn wait(&self) {
        self.park();
    }

    fn wake(&self) {
        // No thread sleeps elsewhere here.
        let _ = self.unpark();
    }
}

struct SignalWaker(Arc<dyn Signal>);

impl Wake for SignalWaker {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    static WAITING: Cell<bool> = const { Cell::new(false) };
    static SIGNAL: RefCell<Option<Arc<dyn Signal>>> = const { RefCell::new(None) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static WAITING: Cell<bool> = Cell::new(false);
    static SIGNAL: RefCell<Option<Arc<dyn Signal>>> = RefCell::new(None);
}

/// From now on `block_on` waits on this thread in the given way; none: it parks the thread.
pub fn set_signal(signal: Option<Arc<dyn Signal>>) {
    SIGNAL.with(|own| own.replace(signal));
}

/// A way to wait where a thread need not sleep: calls the function until it says true. False: not
/// here. If the first argument is set, nothing may unwind out of the wait.
pub type Suspend = fn(bool, &mut dyn FnMut(&mut Context<'_>) -> bool) -> bool;

static SUSPEND: OnceLock<Suspend> = OnceLock::new();

/// From now on `block_on` waits in the given way wherever that is possible. The first call counts.
pub fn set_suspend(suspend: Suspend) {
    let _ = SUSPEND.set(suspend);
}

/// Waits in that way, if this is a place for it.
pub(crate) fn suspend(shielded: bool, poll: &mut dyn FnMut(&mut Context<'_>) -> bool) -> bool {
    SUSPEND.get().is_some_and(|suspend| suspend(shielded, poll))
}

/// Runs `future` on this thread, which sleeps while it is pending; inside a coroutine, that is
/// suspended instead.
///
/// # Panics
/// Inside a task that is a future, or inside another `block_on`: it would block what is running
/// there. [`block_in_place`](crate::block_in_place) allows it.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut output = None;
    let suspended = suspend(false, &mut |cx| match future.as_mut().poll(cx) {
        Poll::Ready(value) => {
            output = Some(value);
            true
        }
        Poll::Pending => false,
    });
    match output {
        Some(output) if suspended => output,
        _ => block_thread(future),
    }
}

/// Waits as [`block_on`] does, but always blocks the thread, also inside a coroutine.
///
/// # Panics
/// As there.
#[track_caller]
pub fn block_thread<F: Future>(future: Pin<&mut F>) -> F::Output {
    let _waiting = begin_wait();
    sleep_until_ready(future)
}

/// Waits as [`block_thread`] does, for callers that must not panic: the end of a runtime inside
/// another one, and a coroutine that waits while it unwinds.
pub fn block_anywhere<F: Future>(future: F) -> F::Output {
    sleep_until_ready(pin!(future))
}

fn sleep_until_ready<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    // A thread that ends has none: it parks.
    let own = SIGNAL
        .try_with(|own| own.borrow().clone())
        .unwrap_or_default();
    let signal = own.unwrap_or_else(|| Arc::new(Parker::new()));
    let waker = Waker::from(Arc::new(SignalWaker(signal.clone())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            // If this is a worker's thread, another takes its place.
            Poll::Pending => while_blocked(|| signal.wait()),
        }
    }
}

/// Marks this thread as waiting in a `block_on` until this is dropped.
#[derive(Debug)]
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    _barrier: Barrier,
    _runs_tasks: RunsTasks,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.with(|waiting| waiting.set(false));
    }
}

/// True while this thread waits in a `block_on`: another one inside of it is refused.
pub fn is_waiting() -> bool {
    WAITING.with(Cell::get)
}

/// Swaps the mark of a thread that waits in a `block_on`.
pub(super) fn exchange_waiting(is_waiting: &Cell<bool>) {
    WAITING.with(|waiting| waiting.swap(is_waiting));
}

/// The text of tokio, which programs look for, and what to do.
const BANNED: &str = "Cannot start a runtime from within a runtime. This happens because a \
                      function (like `block_on`) attempted to block the current thread while the \
                      thread is being used to drive asynchronous tasks: await the future instead, \
                      or move the blocking call into spawn_blocking or block_in_place";

/// For threads that wait in another way than [`block_on`] does.
///
/// # Panics
/// As `block_on`.
#[track_caller]
pub fn begin_wait() -> Waiting {
    assert!(!context::is_blocking_banned(), "{BANNED}");
    assert!(!WAITING.with(Cell::get), "{BANNED}");
    WAITING.with(|waiting| waiting.set(true));
    Waiting {
        _barrier: Barrier::raise(),
        _runs_tasks: RunsTasks::begin(),
    }
}

//! The local set that runs on this thread.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use super::entered;
use super::shared::LocalShared;
use super::tasks::LocalTasks;
use crate::context::{self, Exchange};
use crate::sync::Arc;
use crate::task::{BeforeFirstPoll, Body, FutureBody, JoinHandle, Options, SpawnRequest};

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    static CURRENT: Cell<*const LocalTasks> = const { Cell::new(std::ptr::null()) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static CURRENT: Cell<*const LocalTasks> = Cell::new(std::ptr::null());
}

impl LocalTasks {
    /// Runs `f` with this set as the one that `spawn_local` finds.
    pub(super) fn enter<R>(self: &Rc<Self>, f: impl FnOnce() -> R) -> R {
        struct EnteredSet(Cell<*const LocalTasks>);
        impl Exchange for EnteredSet {
            fn exchange(&self) {
                CURRENT.with(|current| current.swap(&self.0));
            }
        }
        context::installed(&EnteredSet(Cell::new(Rc::as_ptr(self))), f)
    }
}

/// Returns the address of the set that runs on this thread, or null.
pub(super) fn running() -> *const LocalTasks {
    CURRENT.with(Cell::get)
}

/// Returns the set that runs on this thread.
pub(super) fn current() -> Option<Rc<LocalTasks>> {
    let set = CURRENT.with(Cell::get);
    if set.is_null() {
        return None;
    }
    // SAFETY: `enter` took the pointer from the `Rc` that it borrows until it returns, and we are
    // inside of it, on this thread.
    unsafe {
        Rc::increment_strong_count(set);
        Some(Rc::from_raw(set))
    }
}

/// True if this thread is inside the set that `shared` is a half of.
pub(super) fn is_running(shared: *const LocalShared) -> bool {
    let set = CURRENT.with(Cell::get);
    // SAFETY: `enter` sets the pointer for as long as it borrows the set, on this thread.
    unsafe { set.as_ref() }.is_some_and(|set| std::ptr::eq(Arc::as_ptr(&set.shared), shared))
}

/// Starts a `!Send` task on the local set that this thread runs, or has entered since.
///
/// # Panics
/// Outside of [`LocalSet::run_until`](super::LocalSet::run_until) and
/// [`LocalSet::enter`](super::LocalSet::enter).
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    spawn_local_request(SpawnRequest::new(FutureBody(future), Options::here()))
}

/// Starts a task with a body of any kind, as [`spawn_local`] does.
///
/// # Panics
/// As there.
#[track_caller]
pub fn spawn_local_request<B, H>(request: SpawnRequest<B, H>) -> JoinHandle<B::Output>
where
    B: Body + 'static,
    B::Output: 'static,
    H: BeforeFirstPoll,
{
    match entered::newest(running()).or_else(current) {
        Some(set) => set.spawn(request),
        None => panic!(
            "`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`: \
             run it inside LocalSet::run_until or LocalSet::enter, or use spawn for a future that \
             is Send"
        ),
    }
}

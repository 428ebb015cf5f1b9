//! What this thread is doing: its worker, the task it resumes, that poll's budget.
//!
//! Saved and restored around every turn of a task, nested ones included (a local set inside a
//! task). The accessors are never inlined into code that could switch stacks between two reads.

use std::cell::Cell;
use std::ptr::NonNull;

use crate::local::LocalShared;
use crate::sched::worker::Worker;
use crate::task::state::Home;
use crate::task::{Header, TaskRef};
use crate::tuning::BUDGET_PER_POLL;

struct Context {
    worker: Cell<*const Worker>,
    local: Cell<*const LocalShared>,
    task: Cell<*const Header>,
    budget: Cell<u8>,
    /// What a turn's budget begins with.
    allowance: Cell<u8>,
    woke_itself: Cell<bool>,
    /// The number of a thread that runs the tasks of a station.
    post: Cell<Option<u16>>,
    /// Tasks of the station that are pinned to it.
    pinned: Cell<usize>,
}

impl Context {
    const fn new() -> Context {
        Context {
            worker: Cell::new(std::ptr::null()),
            local: Cell::new(std::ptr::null()),
            task: Cell::new(std::ptr::null()),
            budget: Cell::new(0),
            allowance: Cell::new(BUDGET_PER_POLL),
            woke_itself: Cell::new(false),
            post: Cell::new(None),
            pinned: Cell::new(0),
        }
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    static CONTEXT: Context = const { Context::new() };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
crate::sync::thread_local! {
    static CONTEXT: Context = Context::new();
}

/// What one task's turn hid, to be restored at its end.
#[must_use]
pub(crate) struct Turn {
    task: *const Header,
    budget: u8,
    woke_itself: bool,
}

/// This thread resumes `task` from now on.
#[inline]
pub(crate) fn begin_turn(task: NonNull<Header>) -> Turn {
    CONTEXT.with(|c| Turn {
        task: c.task.replace(task.as_ptr()),
        budget: c.budget.replace(c.allowance.get()),
        woke_itself: c.woke_itself.replace(false),
    })
}

impl Turn {
    /// The turn is over. True: the task woke itself meanwhile.
    #[inline]
    pub(crate) fn end(self) -> bool {
        CONTEXT.with(|c| {
            c.task.set(self.task);
            c.budget.set(self.budget);
            c.woke_itself.replace(self.woke_itself)
        })
    }
}

/// True (and noted for the end of the turn) if `task` is what this thread resumes.
#[inline]
pub(crate) fn self_wake(task: NonNull<Header>) -> bool {
    CONTEXT.with(|c| {
        let own = std::ptr::eq(c.task.get(), task.as_ptr());
        if own {
            c.woke_itself.set(true);
        }
        own
    })
}

/// True inside a task's turn: blocking this thread would block its worker.
pub fn in_task() -> bool {
    CONTEXT.with(|c| !c.task.get().is_null())
}

/// A reference to the task that this thread resumes.
pub fn current_task() -> Option<TaskRef> {
    let task = NonNull::new(CONTEXT.with(|c| c.task.get()).cast_mut())?;
    // SAFETY: rule 1: its entry is being run by this thread and keeps it alive.
    Some(unsafe { TaskRef::retain(task) })
}

/// The header of the task that this thread resumes, or null. It is alive while its body is.
pub fn current_header() -> *const Header {
    CONTEXT.with(|c| c.task.get())
}

/// The running task goes on nowhere but on this thread. True: its body calls [`unpin`] here when it ends.
/// False: its home has one thread at a time (a local set, a pool in order, a simulation), and the body has
/// to see for itself that it is still the same one.
#[inline(never)]
pub fn pin() -> bool {
    // SAFETY: rule 1: the entry is being run by this thread and keeps the task alive.
    let Some(task) = (unsafe { current_header().as_ref() }) else {
        return false;
    };
    let home = task.state.load().home();
    with_worker(|worker| match worker {
        Some(worker) if home == Home::Pool && worker.pool.has_many_threads() => {
            task.state.pin(worker.pinned_one() as u16);
            true
        }
        None if home == Home::Station => CONTEXT.with(|c| {
            let Some(post) = c.post.get() else {
                return false;
            };
            c.pinned.set(c.pinned.get() + 1);
            task.state.pin(post);
            true
        }),
        _ => false,
    })
}

/// This thread runs the tasks of a station, and no other has its number.
pub fn set_post(post: u16) {
    CONTEXT.with(|c| c.post.set(Some(post)));
}

/// Tasks of the station that are pinned to this thread: it must not end while there are any.
pub fn pinned_here() -> usize {
    CONTEXT.with(|c| c.pinned.get())
}

/// A body that called [`pin`] has ended, on the same thread.
#[inline(never)]
pub fn unpin() {
    with_worker(|worker| match worker {
        Some(worker) => worker.unpinned_one(),
        None => CONTEXT.with(|c| c.pinned.set(c.pinned.get().saturating_sub(1))),
    });
}

/// The task that has its turn here has had it for long. If it wants another, it stands in line with the tasks of all
/// workers of the pool: otherwise those that share its worker get less than the others. For bodies that
/// are preempted; says nothing elsewhere.
pub fn note_long_turn() {
    with_worker(|worker| {
        if let Some(worker) = worker {
            worker.note_long_turn();
        }
    });
}

/// Calls `f` with this thread's worker, if it is one.
#[inline]
pub(crate) fn with_worker<R>(f: impl FnOnce(Option<&Worker>) -> R) -> R {
    let worker = CONTEXT.with(|c| c.worker.get());
    // SAFETY: `enter_worker` keeps the worker alive and in place while it is set, on this thread
    // only.
    f(unsafe { worker.as_ref() })
}

/// Sets this thread's worker for the duration of `f`.
pub(crate) fn enter_worker<R>(worker: &Worker, f: impl FnOnce() -> R) -> R {
    struct Leave(*const Worker, u8);
    impl Drop for Leave {
        fn drop(&mut self) {
            CONTEXT.with(|c| {
                c.worker.set(self.0);
                c.allowance.set(self.1);
            });
        }
    }
    let allowance = worker.pool.config.run_budget;
    let _leave = CONTEXT.with(|c| Leave(c.worker.replace(worker), c.allowance.replace(allowance)));
    f()
}

/// The local set that this thread is running.
pub(crate) fn local() -> *const LocalShared {
    CONTEXT.with(|c| c.local.get())
}

/// Sets the local set that this thread is running; gives the one before.
pub(crate) fn set_local(local: *const LocalShared) -> *const LocalShared {
    CONTEXT.with(|c| c.local.replace(local))
}

/// What became of a wish to spend budget.
pub(crate) enum Spend {
    Unlimited,
    Spent,
    Exhausted,
}

#[inline]
pub(crate) fn spend_budget() -> Spend {
    CONTEXT.with(|c| {
        if c.task.get().is_null() {
            return Spend::Unlimited;
        }
        match c.budget.get().checked_sub(1) {
            Some(left) => {
                c.budget.set(left);
                Spend::Spent
            }
            None => {
                with_worker(|worker| {
                    if let Some(worker) = worker {
                        worker.budget_exhausted();
                    }
                });
                Spend::Exhausted
            }
        }
    })
}

pub(crate) fn refund_budget() {
    CONTEXT.with(|c| c.budget.set(c.budget.get().saturating_add(1)));
}

pub(crate) fn budget() -> Option<u8> {
    CONTEXT.with(|c| (!c.task.get().is_null()).then(|| c.budget.get()))
}

/// Forgets the task for the duration of `f`: `f` is the root of something of its own.
pub fn outside_task<R>(f: impl FnOnce() -> R) -> R {
    let hidden = CONTEXT.with(|c| Turn {
        task: c.task.replace(std::ptr::null()),
        budget: c.budget.get(),
        woke_itself: c.woke_itself.replace(false),
    });
    struct Restore(Option<Turn>);
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some(turn) = self.0.take() {
                turn.end();
            }
        }
    }
    let _restore = Restore(Some(hidden));
    f()
}

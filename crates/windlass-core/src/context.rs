//! What this thread is doing: its worker, the task it resumes, that poll's budget.
//!
//! Saved and restored around every turn of a task, nested ones included (a local set inside a
//! task). The accessors are never inlined into code that could switch stacks between two reads.
//!
//! # Coroutines: what a switch does to this
//!
//! A coroutine leaves its stack in the middle of a call and comes back later, after other
//! coroutines have run on the thread. A frame that saves a thread-local, sets it and restores it
//! when it returns would then restore in the wrong order, and a pointer in it would dangle. So
//! every such frame does one of two things:
//!
//! - **It cannot be suspended.** [`SuspendPoint`] tells where the thread is: which task has its
//!   turn, and how many frames that must not be suspended are on the stack. The turn of a task, a
//!   thread that waits in `block_on` and a worker that is entered change it. A coroutine notes the
//!   point when it is resumed, and it is suspended only by code at the same point.
//! - **It is exchanged.** [`installed`] puts a value into a thread-local for the duration of a
//!   call and keeps a list of such calls. A switch takes the calls of the coroutine out of the
//!   thread ([`take_out`]) and puts them back when the coroutine goes on ([`put_back`]). The local
//!   set, deadlines, task-locals and the mark of a thread that blocks are of this kind.

use std::cell::Cell;
use std::ptr::NonNull;
use std::thread::LocalKey;

use crate::sched::worker::Worker;
use crate::task::state::Home;
use crate::task::{Header, TaskRef};
use crate::tuning::BUDGET_PER_POLL;

struct Context {
    worker: Cell<*const Worker>,
    task: Cell<*const Header>,
    /// Frames on this stack that must not be suspended, turns of tasks aside.
    barriers: Cell<u32>,
    /// The newest call of [`installed`] on this stack.
    newest: Cell<*const Installed>,
    /// A call that runs tasks is on this stack.
    runs_tasks: Cell<bool>,
    /// The task that may block this thread ([`block_in_place`](crate::block_in_place)).
    may_block: Cell<*const Header>,
    budget: Cell<u8>,
    /// What a turn's budget begins with.
    allowance: Cell<u8>,
    woke_itself: Cell<bool>,
    /// The number of a thread that runs the tasks of an external executor.
    thread_slot: Cell<Option<u16>>,
    /// Tasks of the external executor that are pinned to it.
    pinned: Cell<usize>,
}

impl Context {
    const fn new() -> Context {
        Context {
            worker: Cell::new(std::ptr::null()),
            task: Cell::new(std::ptr::null()),
            barriers: Cell::new(0),
            newest: Cell::new(std::ptr::null()),
            runs_tasks: Cell::new(false),
            may_block: Cell::new(std::ptr::null()),
            budget: Cell::new(0),
            allowance: Cell::new(BUDGET_PER_POLL),
            woke_itself: Cell::new(false),
            thread_slot: Cell::new(None),
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

/// True if blocking this thread would block its worker: inside a task's turn, and not inside of its
/// `block_in_place`.
pub(crate) fn is_blocking_banned() -> bool {
    CONTEXT.with(|c| {
        let task = c.task.get();
        !task.is_null() && !std::ptr::eq(task, c.may_block.get())
    })
}

/// Swaps the task that may block this thread.
pub(crate) fn exchange_may_block(task: &Cell<*const Header>) {
    CONTEXT.with(|c| c.may_block.swap(task));
}

/// Swaps what is left of the turn's budget.
pub(crate) fn exchange_budget(budget: &Cell<u8>) {
    CONTEXT.with(|c| c.budget.swap(budget));
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

/// The way in which a task is kept on the thread on which its body has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// The task's queue keeps it there. The body calls [`unpin`] here when it ends.
    Pinned,
    /// The task's home has one thread at a time (a local set, a pool in order, a simulation). The
    /// body has to see for itself that it is still the same one, inside of a call that runs tasks
    /// ([`runs_tasks`]).
    OnThread,
}

/// The running task goes on nowhere but on this thread.
#[inline(never)]
pub fn pin() -> Confinement {
    // SAFETY: rule 1: the entry is being run by this thread and keeps the task alive.
    let Some(task) = (unsafe { current_header().as_ref() }) else {
        return Confinement::OnThread;
    };
    let home = task.state.load().home();
    with_worker(|worker| match worker {
        Some(worker) if home == Home::Pool && worker.pool.has_many_threads() => {
            task.state.pin(worker.pinned_one() as u16);
            Confinement::Pinned
        }
        None if home == Home::External => CONTEXT.with(|c| {
            let Some(thread_slot) = c.thread_slot.get() else {
                return Confinement::OnThread;
            };
            c.pinned.set(c.pinned.get() + 1);
            task.state.pin(thread_slot);
            Confinement::Pinned
        }),
        _ => {
            if home == Home::Local {
                crate::executor::local_set::note_coroutine();
            }
            Confinement::OnThread
        }
    })
}

/// True inside of a call on this thread that runs tasks: a worker's, or a `block_on`. When the
/// outermost one ends, a thread with suspended coroutines is marked (`thread_end`).
pub fn runs_tasks() -> bool {
    CONTEXT.with(|c| c.runs_tasks.get())
}

/// A call that runs tasks, or coroutines.
#[derive(Debug)]
#[must_use = "the call ends when this is dropped"]
pub struct RunsTasks {
    is_outermost: bool,
}

impl RunsTasks {
    /// The call begins.
    pub fn begin() -> RunsTasks {
        RunsTasks {
            is_outermost: CONTEXT.with(|c| !c.runs_tasks.replace(true)),
        }
    }
}

impl Drop for RunsTasks {
    fn drop(&mut self) {
        if self.is_outermost {
            crate::executor::local_set::finish_orphans();
            CONTEXT.with(|c| c.runs_tasks.set(false));
            #[cfg(not(any(windlass_loom, windlass_shuttle)))]
            crate::thread_end::leave_mark();
        }
    }
}

/// Declares that this thread runs tasks of an external executor; no other thread may have its
/// number.
pub fn set_thread_slot(thread_slot: u16) {
    CONTEXT.with(|c| c.thread_slot.set(Some(thread_slot)));
}

/// Tasks of the external executor that are pinned to this thread: it must not end while there are
/// any.
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

/// The task that has its turn here has had it for long. If it wants another, it stands in line with
/// the tasks of all workers of the pool: otherwise those that share its worker get less than the
/// others. For bodies that are preempted; says nothing elsewhere.
pub fn note_long_turn() {
    with_worker(|worker| {
        if let Some(worker) = worker {
            worker.note_long_turn();
        }
    });
}

/// Calls `f` with this thread's worker, if it is one.
///
/// Always inlined: `f` may hold a body that would go through memory otherwise (`Pool::spawn_from`).
#[inline(always)]
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
    let _runs_tasks = RunsTasks::begin();
    let _barrier = Barrier::raise();
    let allowance = worker.pool.config.run_budget.min(UNLIMITED - 1);
    let _leave = CONTEXT.with(|c| Leave(c.worker.replace(worker), c.allowance.replace(allowance)));
    f()
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
        match c.budget.get() {
            UNLIMITED => Spend::Unlimited,
            left @ 1.. => {
                c.budget.set(left - 1);
                Spend::Spent
            }
            0 => {
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

/// The budget of a poll that is not held back. A turn begins with less (`begin_turn`).
pub(crate) const UNLIMITED: u8 = u8::MAX;

/// Lifts the budget of this poll while `f` runs. The budget belongs to the turn: a turn that begins
/// inside of `f` has its own.
pub(crate) fn with_unlimited_budget<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(u8);
    impl Drop for Restore {
        fn drop(&mut self) {
            CONTEXT.with(|c| c.budget.set(self.0));
        }
    }
    let _restore = Restore(CONTEXT.with(|c| c.budget.replace(UNLIMITED)));
    f()
}

pub(crate) fn budget() -> Option<u8> {
    CONTEXT.with(|c| (!c.task.get().is_null()).then(|| c.budget.get()))
}

/// Forgets the task for the duration of `f`: `f` is the root of something of its own.
pub fn outside_task<R>(f: impl FnOnce() -> R) -> R {
    if !in_task() {
        // Nothing to restore, so a coroutine may be suspended inside of `f`.
        return f();
    }
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

// ---- where a coroutine may be suspended ---------------------------------------------------

/// Where this thread is: whose turn it is, and how many frames are below that must not be
/// suspended. A coroutine is suspended only at the point at which it was resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspendPoint {
    task: *const Header,
    barriers: u32,
}

impl Default for SuspendPoint {
    fn default() -> SuspendPoint {
        SuspendPoint {
            task: std::ptr::null(),
            barriers: 0,
        }
    }
}

/// Returns where this thread is now.
#[inline(never)]
pub fn suspend_point() -> SuspendPoint {
    CONTEXT.with(|c| SuspendPoint {
        task: c.task.get(),
        barriers: c.barriers.get(),
    })
}

/// No coroutine is suspended by the code that runs while this exists.
#[derive(Debug)]
#[must_use = "the barrier is gone when this is dropped"]
pub struct Barrier(std::marker::PhantomData<*const ()>);

impl Barrier {
    /// Raises a barrier on this thread.
    #[inline]
    pub fn raise() -> Barrier {
        CONTEXT.with(|c| c.barriers.set(c.barriers.get() + 1));
        Barrier(std::marker::PhantomData)
    }
}

impl Drop for Barrier {
    #[inline]
    fn drop(&mut self) {
        CONTEXT.with(|c| c.barriers.set(c.barriers.get() - 1));
    }
}

// ---- what a switch exchanges --------------------------------------------------------------

/// A value that takes turns with the one in a thread-local.
pub trait Exchange {
    /// Swaps the value with the one of the thread that calls this. Must not panic.
    fn exchange(&self);
}

/// A call of [`installed`] that has not returned. It lies in the frame of that call.
struct Installed {
    /// What the call has installed. Valid until the call returns.
    value: *const dyn Exchange,
    /// On a thread: the call that is older. Taken out: the call that is newer.
    next: Cell<*const Installed>,
}

/// The calls of [`installed`] of a suspended coroutine, the oldest first.
#[derive(Debug)]
#[must_use = "the coroutine's values have to be put back when it goes on"]
pub struct DetachedValues(*const Installed);

impl Default for DetachedValues {
    fn default() -> DetachedValues {
        DetachedValues(std::ptr::null())
    }
}

/// How many calls of [`installed`] there are, in a form that only [`take_out`] understands.
#[derive(Debug, Clone, Copy)]
pub struct InstalledDepth(*const Installed);

/// Exchanges `value` for the duration of `f`. If a coroutine is suspended inside of `f`, the value
/// is exchanged back until the coroutine goes on.
pub fn installed<R>(value: &dyn Exchange, f: impl FnOnce() -> R) -> R {
    struct Remove<'a>(&'a Installed);
    impl Drop for Remove<'_> {
        fn drop(&mut self) {
            remove(self.0);
        }
    }
    // SAFETY: only the lifetime changes. The pointer is used while the call below is on a stack:
    // `Remove` takes it out of the list before `value` can be gone, also when `f` unwinds.
    let value = unsafe { std::mem::transmute::<*const dyn Exchange, *const dyn Exchange>(value) };
    let call = Installed {
        value,
        next: Cell::new(std::ptr::null()),
    };
    push(&call);
    let _remove = Remove(&call);
    f()
}

#[inline(never)]
fn push(call: &Installed) {
    // SAFETY: the call that `call` stands for has not returned, so its value is there.
    unsafe { &*call.value }.exchange();
    CONTEXT.with(|c| call.next.set(c.newest.replace(call)));
}

#[inline(never)]
fn remove(call: &Installed) {
    CONTEXT.with(|c| {
        if !std::ptr::eq(c.newest.get(), call) {
            // Another library has switched stacks in the middle: what is restored now would be
            // restored in the wrong place.
            eprintln!(
                "windlass: a stack was left in the middle of a call and entered again elsewhere"
            );
            std::process::abort();
        }
        c.newest.set(call.next.get());
    });
    // SAFETY: as in `push`.
    unsafe { &*call.value }.exchange();
}

/// The calls of [`installed`] that are on this stack now: those that a coroutine makes after it is
/// resumed come on top of them.
#[inline]
pub fn installed_before() -> InstalledDepth {
    InstalledDepth(CONTEXT.with(|c| c.newest.get()))
}

/// A coroutine has been suspended: takes its calls of [`installed`] out of this thread.
#[inline]
pub fn take_out(before: InstalledDepth) -> DetachedValues {
    if std::ptr::eq(CONTEXT.with(|c| c.newest.get()), before.0) {
        return DetachedValues::default();
    }
    take_out_slowly(before)
}

#[cold]
fn take_out_slowly(before: InstalledDepth) -> DetachedValues {
    let mut taken: *const Installed = std::ptr::null();
    loop {
        let newest = CONTEXT.with(|c| c.newest.get());
        if std::ptr::eq(newest, before.0) {
            return DetachedValues(taken);
        }
        // SAFETY: calls above `before` are frames of the coroutine, which is suspended and so has
        // not returned from them.
        let call = unsafe { &*newest };
        remove(call);
        call.next.set(taken);
        taken = newest;
    }
}

/// The coroutine goes on, on this thread: puts its calls back.
///
/// # Safety
/// `taken` is what [`take_out`] gave when the same coroutine was suspended last, and its frames are
/// still there.
#[inline]
pub unsafe fn put_back(taken: DetachedValues) {
    let mut next = taken.0;
    while !next.is_null() {
        // SAFETY: says the caller.
        let call = unsafe { &*next };
        next = call.next.get();
        push(call);
    }
}

/// A thread-local that shows a value of a frame on the stack: the value stays where it is, and the
/// thread-local points at it.
pub struct FrameLocal<T>(Cell<*const T>);

impl<T> std::fmt::Debug for FrameLocal<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FrameLocal")
    }
}

impl<T: 'static> FrameLocal<T> {
    /// Nothing is lent yet.
    #[allow(
        clippy::new_without_default,
        reason = "a thread-local needs a const function"
    )]
    pub const fn new() -> FrameLocal<T> {
        FrameLocal(Cell::new(std::ptr::null()))
    }

    /// Runs `f`, which sees `value` in `key`.
    pub fn lend<R>(key: &'static LocalKey<FrameLocal<T>>, value: &T, f: impl FnOnce() -> R) -> R {
        struct Loan<T: 'static> {
            key: &'static LocalKey<FrameLocal<T>>,
            other: Cell<*const T>,
        }
        impl<T: 'static> Exchange for Loan<T> {
            fn exchange(&self) {
                // A thread that ends has no such thread-local any more, and nothing to see in it.
                let _ = self.key.try_with(|lent| lent.0.swap(&self.other));
            }
        }
        let loan = Loan {
            key,
            other: Cell::new(std::ptr::from_ref(value)),
        };
        installed(&loan, f)
    }

    /// Calls `f` with the value that is lent here, if one is.
    pub fn with<R>(key: &'static LocalKey<FrameLocal<T>>, f: impl FnOnce(Option<&T>) -> R) -> R {
        let value = key
            .try_with(|lent| lent.0.get())
            .unwrap_or(std::ptr::null());
        // SAFETY: `lend` borrows the value until it returns, and we are inside of it: the pointer
        // is in the thread-local only while the frame of `lend` is below us on this stack.
        f(unsafe { value.as_ref() })
    }
}

//! What a coroutine and the code that resumes it share, and how it waits.
//!
//! The rules that the `unsafe` blocks of this folder cite:
//!
//! 1. **In place.** A frame does not move from the first resume of its coroutine to its end: it is
//!    part of a pinned body, or of a box. The coroutine's stack points at it.
//! 2. **One thread at a time.** Only the thread that resumes a coroutine, or the coroutine itself
//!    on that thread, touches its frame and its stack. Which thread that is changes only between
//!    two resumes, and for a pinned task never.
//! 3. **Own stack.** `yielder` points at the base of the coroutine's own stack and is used only by
//!    code that runs on it, which is why that stack is still there.
//! 4. **Own context.** The context that a future is polled with lies on the coroutine's own stack,
//!    in the frame of the wait that polls. So it is there until that poll returns, also if the
//!    future waits inside of its poll and the coroutine is suspended meanwhile. (A context of the
//!    resume would be gone by then: the resume that began the poll has returned.)
//! 5. **Own task.** `task` is the header of the block that the frame is part of, so it lives as
//!    long.
//! 6. **Never dropped half-way.** The frames on a suspended stack are never dropped or unmapped:
//!    they may be borrowed by others (`scope`), or be C code. They unwind, or they are leaked.
//! 7. **Same point.** A coroutine is suspended only by code at the point at which it was resumed
//!    (`context::SuspendPoint`): not inside the turn of another task, nor inside a thread's wait.
//!    What else its frames have put into thread-locals of ours is exchanged at every switch.
//! 8. **Same pool.** A coroutine that began on a worker is resumed by workers of that pool only:
//!    its frames may be in the middle of a fork-join.
//!
//! 9. **Thread-locals stay.** The thread-locals of a thread are destroyed after the frames of the
//!    coroutines that began on it have unwound; a thread on which some never do stays
//!    (`windlass_core::thread_end`).
//!
//! **The one limit of safe coroutines** is a thread-local of another library that relies on calls
//! of a thread being nested. Coroutines that take turns on a thread are not, and we cannot see or
//! exchange what is not ours. It has three forms, and `WINDLASS_CHECK=1` looks for all of them
//! (`check.rs`):
//!
//! - What a library keeps in a thread-local for the duration of a call, by a pointer to something
//!   on the stack (the crate `scoped-tls` does so). If two coroutines of one worker wait inside
//!   such a call, the pointers are restored in the wrong order, and one may dangle.
//! - The initial value of a `thread_local!` may be made twice if a coroutine waits while it makes
//!   it: the second one takes the place of the first, to which others may have references.
//! - `exit` destroys the thread-locals of its thread. If a coroutine calls it, and one of these
//!   destructors waits, the coroutine is suspended in the middle of it, and others on the thread
//!   may go on with references to thread-locals that are gone.
//!
//! A migrating coroutine may find itself on another thread after a suspension. So nothing here
//! keeps a reference to a thread-local over one, and what reads a thread-local is a function of its
//! own.

use std::cell::{Cell, OnceCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use corosensei::Yielder;
use windlass_core::context::{self, DetachedValues, SuspendPoint};
use windlass_core::deep::LevelsLeft;
use windlass_core::sched::fork;
use windlass_core::sync::thread::panicking;
use windlass_core::sync::with_world;
use windlass_core::task::{Header, Unwound, with_context};
use windlass_core::tuning::CANCEL_RESUMES;

use super::{check, sanitizer};
use crate::handle::{self, EnteredRuntime};
use windlass_sync::lock::Notify;

/// What a coroutine and the code that resumes it share.
#[derive(Default)]
pub(super) struct Frame {
    yielder: Cell<Option<*const Yielder<(), ()>>>,
    /// None: driven by hand.
    task: Cell<Option<NonNull<Header>>>,
    /// Where the thread was when the coroutine was resumed last (rule 7).
    resumed_at: Cell<SuspendPoint>,
    /// What its frames have put into thread-locals, while it is suspended.
    taken_out: Cell<DetachedValues>,
    /// The runtimes that it has entered, while it is suspended on a thread that is no worker.
    entered: Cell<Vec<EnteredRuntime>>,
    /// The pool whose worker resumed it first; none: no worker (rule 8).
    pool: Cell<Option<usize>>,
    /// Sections that nothing may unwind out of.
    shields: Cell<u64>,
    /// Those of them that do not end by themselves: foreign code.
    foreign: Cell<u64>,
    /// Nested destructors that its stack still has room for, while it is suspended.
    levels_left: LevelsLeft,
    /// Number of cancellations that were raised in it.
    raised: Cell<usize>,
    /// Driven by hand, and asked to end: what it waits for wakes this from then on.
    finishing: OnceCell<Waker>,
    bounds: Cell<Bounds>,
    /// Its stack, for AddressSanitizer.
    side: sanitizer::Side,
    parking: OnceCell<Arc<Notify>>,
}

/// The usable part of a stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) lowest: *mut u8,
    /// Above the highest address.
    pub(super) top: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            lowest: std::ptr::null_mut(),
            top: 0,
        }
    }
}

thread_local! {
    static CURRENT: Cell<*const Frame> = const { Cell::new(std::ptr::null()) };
}

/// The frame of the coroutine whose stack this code runs on.
#[inline(never)]
pub(super) fn current<'a>() -> Option<&'a Frame> {
    // SAFETY: rules 1 and 2: set for the duration of a resume. The reference is used by code on the
    // coroutine's stack only, which ends before the frame does.
    unsafe { CURRENT.with(Cell::get).as_ref() }
}

/// As `current`, if the coroutine may be suspended here (rule 7): inside of a task that the
/// coroutine runs itself (a local set, an unconfined task) it may not, because suspending would
/// suspend the wrong one.
#[inline(never)]
pub(super) fn running<'a>() -> Option<&'a Frame> {
    // SAFETY: as in `current`.
    let current = unsafe { CURRENT.with(Cell::get).as_ref::<'a>() };
    current.filter(|frame| frame.resumed_at.get() == context::suspend_point())
}

#[inline(never)]
fn replace_current(frame: *const Frame) -> *const Frame {
    CURRENT.with(|current| current.replace(frame))
}

/// The pool whose worker this thread is.
fn pool_here() -> Option<usize> {
    fork::here(|here| here.map(|here| here.pool_id()))
}

impl Frame {
    /// Runs `switch`, which goes over to this frame's coroutine and comes back.
    pub(super) fn during_resume<R>(&self, switch: impl FnOnce() -> R) -> R {
        self.resumed_at.set(context::suspend_point());
        let before = context::installed_before();
        let outer = replace_current(self);
        // SAFETY: it was taken out below, when this coroutine was suspended last. Its frames are
        // still there (rule 6).
        unsafe { context::put_back(self.taken_out.take()) };
        self.levels_left.exchange();
        // It does not unwind: what a coroutine raises is caught on its own stack.
        let result = match self.pool.get() {
            Some(_) => switch(),
            // On a worker there is no need: a worker is in its own runtime, whatever was entered
            // there.
            None => handle::with_entered(&self.entered, switch),
        };
        self.levels_left.exchange();
        self.taken_out.set(context::take_out(before));
        replace_current(outer);
        result
    }

    /// Notes where the coroutine begins.
    pub(super) fn note_pool(&self) {
        self.pool.set(pool_here());
    }

    /// True if this thread belongs to the pool on which the coroutine began (rule 8).
    pub(super) fn is_on_its_pool(&self) -> bool {
        self.pool.get() == pool_here()
    }

    /// The first thing that runs on the coroutine's stack.
    pub(super) fn begin(&self, yielder: &Yielder<(), ()>) {
        self.side.arrive();
        self.yielder.set(Some(yielder));
    }

    /// The last thing that runs on the coroutine's stack.
    pub(super) fn end(&self) {
        self.side.leave(true);
    }

    pub(super) fn set_task(&self, task: *const Header) {
        self.task.set(NonNull::new(task.cast_mut()));
    }

    pub(super) fn set_bounds(&self, bounds: Bounds) {
        self.bounds.set(bounds);
    }

    /// The usable part of its stack.
    pub(super) fn bounds(&self) -> Bounds {
        self.bounds.get()
    }

    /// The task whose body this is.
    pub(super) fn header(&self) -> Option<&Header> {
        // SAFETY: rule 5.
        self.task.get().map(|task| unsafe { task.as_ref() })
    }

    pub(super) fn is_driven_by_hand(&self) -> bool {
        self.task.get().is_none()
    }

    /// Where `unpark` leaves its permit.
    pub(super) fn parking(&self) -> &Arc<Notify> {
        self.parking.get_or_init(Arc::default)
    }

    /// From now on every suspension point raises, and what a wait inside of a section waits for
    /// wakes `waker`.
    pub(super) fn finish_by_hand(&self, waker: Waker) {
        let _ = self.finishing.set(waker);
    }

    pub(super) fn is_shielded(&self) -> bool {
        self.shields.get() > 0
    }

    pub(super) fn is_in_foreign_code(&self) -> bool {
        self.foreign.get() > 0
    }

    /// Runs `f`, which may be C code: nothing unwinds out of a wait in it.
    pub(super) fn in_foreign_code<T>(&self, f: impl FnOnce() -> T) -> T {
        struct Leave<'a>(&'a Cell<u64>);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        let _shield = self.shield();
        self.foreign.set(self.foreign.get() + 1);
        let _leave = Leave(&self.foreign);
        f()
    }

    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        if self.is_shielded() {
            return false;
        }
        match self.header() {
            Some(task) => task.state().cancel_applies(),
            None => self.finishing.get().is_some(),
        }
    }

    #[inline(always)]
    fn raise_if_cancelled(&self) {
        if self.is_cancelled() {
            self.raise();
        }
    }

    /// Unwinds. A coroutine that has caught that too often is suspended instead, for good: its
    /// owner sees it and leaks it.
    #[cold]
    fn raise(&self) {
        self.raised.set(self.raised.get() + 1);
        if self.has_given_up() {
            loop {
                self.switch_away();
            }
        }
        std::panic::resume_unwind(Box::new(Unwound))
    }

    /// True for a coroutine that catches its cancellation and goes on waiting, over and over.
    pub(super) fn has_given_up(&self) -> bool {
        self.raised.get() > CANCEL_RESUMES
    }

    /// Waits for `future`; the thread goes on with something else.
    #[inline(always)]
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        if panicking() {
            return self.block_thread(future);
        }
        let mut future = pin!(future);
        self.raise_if_cancelled();
        loop {
            match self.poll(future.as_mut()) {
                Poll::Ready(output) => return output,
                Poll::Pending => self.suspend(),
            }
        }
    }

    /// A function of its own, so that nothing a poll looks up for its thread is used after a
    /// switch.
    #[inline(never)]
    fn poll<F: Future>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        self.with_context(|cx| future.poll(cx))
    }

    /// Calls `f` with a context whose waker resumes this coroutine. If it is driven by hand, a wake
    /// has an effect only while it is asked to end.
    #[inline(always)]
    fn with_context<R>(&self, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        match self.task.get() {
            // SAFETY: rules 4 and 5: the context is on this stack, and the block outlives its
            // frames. The pointer is the one that the turn was begun with, which is the whole
            // block's.
            Some(task) => unsafe { with_context(task, f) },
            None => {
                let waker = self.finishing.get().unwrap_or(Waker::noop());
                f(&mut Context::from_waker(waker))
            }
        }
    }

    /// Gives every other ready task a turn.
    #[inline(always)]
    pub(super) fn yield_now(&self) {
        if panicking() {
            return windlass_core::sync::thread::yield_now();
        }
        self.raise_if_cancelled();
        self.wake_itself();
        self.suspend();
    }

    #[inline(never)]
    fn wake_itself(&self) {
        self.with_context(|cx| cx.waker().wake_by_ref());
    }

    /// Goes back to the resumer, until the next resume; raises if the coroutine is cancelled
    /// then.
    ///
    /// Inlined up to the caller's own code: after a switch the processor does not expect the
    /// returns of functions that were called before it, and each costs as much as the switch.
    #[inline(always)]
    fn suspend(&self) {
        self.switch_away();
        self.raise_if_cancelled();
    }

    #[inline(always)]
    fn switch_away(&self) {
        check::suspending(self);
        let yielder = self.yielder.get().expect("it runs, so it has begun");
        self.side.leave(false);
        // SAFETY: rule 3.
        unsafe { &*yielder }.suspend(());
        self.side.arrive();
    }

    /// Nothing unwinds out of a wait until the guard is dropped.
    pub(super) fn shield(&self) -> Shielded<'_> {
        let before = self.shields.get();
        self.shields.set(before + 1);
        if before == 0
            && let Some(task) = self.header()
        {
            task.hold_open();
        }
        Shielded { frame: self }
    }

    /// While a thread unwinds, others that ran on it would seem to unwind too: `panicking()`
    /// belongs to the thread. So the thread waits, even if a `block_on` waits further down, and
    /// no other task can use the thread meanwhile. In a simulation that would be for ever: there a
    /// future that is not ready at once is refused, unless nothing may unwind here.
    #[cold]
    fn block_thread<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        context::outside_task(|| {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
            let is_simulated = with_world(|world| world.is_some());
            match is_simulated && !self.is_shielded() {
                true => windlass_core::block_thread(future),
                false => windlass_core::block_anywhere(future),
            }
        })
    }
}

/// Cancellation is held back until this is dropped.
pub(super) struct Shielded<'a> {
    frame: &'a Frame,
}

impl Drop for Shielded<'_> {
    fn drop(&mut self) {
        let left = self.frame.shields.get() - 1;
        self.frame.shields.set(left);
        if left == 0
            && let Some(task) = self.frame.header()
        {
            task.close();
        }
    }
}

/// Waits for `future`, and nothing unwinds out of the wait: the coroutine that this code runs on is
/// suspended, or else the thread sleeps. False: it would sleep for ever, because it is the one
/// thread of a simulation.
pub(super) fn wait_shielded(future: impl Future) -> bool {
    if let Some(frame) = running().filter(|_| !panicking()) {
        let _shield = frame.shield();
        frame.wait(future);
        return true;
    }
    if with_world(|world| world.is_some()) {
        return false;
    }
    windlass_core::block_anywhere(future);
    true
}

/// How `block_on` waits inside a coroutine.
pub(super) fn suspend_in_block_on(
    shielded: bool,
    poll: &mut dyn FnMut(&mut Context<'_>) -> bool,
) -> bool {
    let Some(frame) = running() else {
        return false;
    };
    if shielded && frame.is_driven_by_hand() {
        // It waits for a job that borrows from it, which ends by itself. What it waits for would
        // keep the waker of its first poll, and so would not wake who finishes the coroutine.
        return false;
    }
    let _shield = shielded.then(|| frame.shield());
    frame.wait(poll_fn(|cx| {
        if poll(cx) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }));
    true
}

//! What a coroutine and whoever resumes it share, and how it waits.
//!
//! The rules that the `unsafe` blocks of this folder cite:
//!
//! 1. **In place.** A frame does not move from the first resume of its coroutine to its end: it is
//!    part of a pinned body, or of a box. The coroutine's stack points at it.
//! 2. **One thread at a time.** Only the thread that resumes a coroutine, or the coroutine itself on
//!    that thread, touches its frame and its stack. Which thread that is changes only between two
//!    resumes, and for a pinned task never.
//! 3. **Own stack.** `yielder` points at the base of the coroutine's own stack and is used only by
//!    code that runs on it, which is why that stack is still there.
//! 4. **This resume.** `context` points at the waker's context of the resume that is under way. Who
//!    runs on the stack has been resumed, and that resume has not returned.
//! 5. **Own task.** `task` is the header of the block that the frame is part of, so it lives as long.
//! 6. **Never dropped half-way.** The frames on a suspended stack are never dropped or unmapped: they
//!    may be borrowed by others (`scope`), or be C code. They unwind, or they are leaked.
//!
//! A migrating coroutine may find itself on another thread after a suspension. So nothing here keeps
//! a reference to a thread-local over one, and what reads a thread-local is a function of its own.

use std::cell::{Cell, OnceCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use corosensei::Yielder;
use windlass_core::context;
use windlass_core::sync::thread::panicking;
use windlass_core::task::{Header, ShieldGuard, Unwound, raise_shield};

use super::check;
use crate::sync::Notify;

/// See the module.
#[derive(Default)]
pub(super) struct Frame {
    yielder: Cell<Option<*const Yielder<(), ()>>>,
    context: Cell<Option<*mut ()>>,
    /// None: driven by hand.
    task: Cell<Option<*const Header>>,
    /// Sections that nothing may unwind out of.
    shields: Cell<u32>,
    /// Driven by hand, and about to be dropped.
    dropped: Cell<bool>,
    bounds: Cell<(usize, usize)>,
    parking: OnceCell<Arc<Notify>>,
}

thread_local! {
    static CURRENT: Cell<*const Frame> = const { Cell::new(std::ptr::null()) };
}

/// The frame of the coroutine that runs on this thread.
#[inline(never)]
pub(super) fn current<'a>() -> Option<&'a Frame> {
    // SAFETY: rules 1 and 2: set for the duration of a resume. The reference is used by code on the
    // coroutine's stack only, which ends before the frame does.
    unsafe { CURRENT.with(Cell::get).as_ref() }
}

/// As `current`, unless the code belongs to another task that the coroutine runs inside of itself (a
/// local set, an unconfined task): there, suspending would suspend the wrong one.
#[inline(never)]
pub(super) fn running<'a>() -> Option<&'a Frame> {
    // SAFETY: as in `current`.
    let current = unsafe { CURRENT.with(Cell::get).as_ref::<'a>() };
    current.filter(|frame| match frame.task.get() {
        Some(own) => std::ptr::eq(own, context::current_header()),
        None => true,
    })
}

#[inline(never)]
fn replace_current(frame: *const Frame) -> *const Frame {
    CURRENT.with(|current| current.replace(frame))
}

impl Frame {
    /// Runs `switch`, which goes over to this frame's coroutine and comes back.
    pub(super) fn during_resume<R>(&self, cx: &mut Context<'_>, switch: impl FnOnce() -> R) -> R {
        self.context.set(Some(std::ptr::from_mut(cx).cast()));
        let before = replace_current(self);
        // It does not unwind: what a coroutine raises is caught on its own stack.
        let result = switch();
        replace_current(before);
        self.context.set(None);
        result
    }

    /// The first thing that runs on the coroutine's stack.
    pub(super) fn begin(&self, yielder: &Yielder<(), ()>) {
        self.yielder.set(Some(yielder));
    }

    pub(super) fn set_task(&self, task: *const Header) {
        self.task.set(Some(task));
    }

    pub(super) fn set_bounds(&self, lowest: usize, top: usize) {
        self.bounds.set((lowest, top));
    }

    /// The lowest usable address of the stack, and the one above its highest.
    pub(super) fn bounds(&self) -> (usize, usize) {
        self.bounds.get()
    }

    /// The task whose body this is.
    pub(super) fn header(&self) -> Option<&Header> {
        // SAFETY: rule 5.
        self.task.get().map(|task| unsafe { &*task })
    }

    /// Where `unpark` leaves its permit.
    pub(super) fn parking(&self) -> &Arc<Notify> {
        self.parking.get_or_init(Arc::default)
    }

    /// From now on every suspension point raises.
    pub(super) fn drop_by_hand(&self) {
        self.dropped.set(true);
    }

    pub(super) fn is_shielded(&self) -> bool {
        self.shields.get() > 0
    }

    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        if self.is_shielded() {
            return false;
        }
        match self.header() {
            Some(task) => task.state().cancel_applies(),
            None => self.dropped.get(),
        }
    }

    #[inline(always)]
    fn raise_if_cancelled(&self) {
        if self.is_cancelled() {
            raise();
        }
    }

    /// Waits for `future`; the thread goes on with something else.
    #[inline(always)]
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        if panicking() {
            return block_thread(future);
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

    /// A function of its own, so that nothing a poll looks up for its thread is used after a switch.
    #[inline(never)]
    fn poll<F: Future>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        let context = self.context.get().expect("it runs, so it was resumed");
        // SAFETY: rule 4.
        future.poll(unsafe { &mut *context.cast::<Context<'_>>() })
    }

    /// Gives everybody else a turn.
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
        let context = self.context.get().expect("it runs, so it was resumed");
        // SAFETY: rule 4.
        unsafe { &mut *context.cast::<Context<'_>>() }
            .waker()
            .wake_by_ref();
    }

    /// Goes back to whoever resumed, until the next resume; raises if the coroutine is cancelled then.
    ///
    /// Inlined up to the caller's own code: after a switch the processor does not expect the returns of
    /// functions that were called before it, and each costs as much as the switch.
    #[inline(always)]
    fn suspend(&self) {
        check::suspending(self);
        let yielder = self.yielder.get().expect("it runs, so it has begun");
        // SAFETY: rule 3.
        unsafe { &*yielder }.suspend(());
        self.raise_if_cancelled();
    }

    /// Nothing unwinds out of a wait until the guard is dropped.
    pub(super) fn shield(&self) -> Shielded<'_> {
        let on_task = self.header().and_then(|_| raise_shield());
        self.shields.set(self.shields.get() + 1);
        Shielded {
            frame: self,
            _on_task: on_task,
        }
    }
}

#[cold]
fn raise() -> ! {
    std::panic::resume_unwind(Box::new(Unwound))
}

/// Cancellation is held back until this is dropped.
pub(super) struct Shielded<'a> {
    frame: &'a Frame,
    _on_task: Option<ShieldGuard>,
}

impl Drop for Shielded<'_> {
    fn drop(&mut self) {
        self.frame.shields.set(self.frame.shields.get() - 1);
    }
}

/// While a thread unwinds, others that ran on it would seem to unwind too: `panicking()` belongs to
/// the thread. So the thread waits.
#[cold]
fn block_thread<F: Future>(future: F) -> F::Output {
    context::outside_task(|| windlass_core::block_thread(pin!(future)))
}

/// How `block_on` waits inside a coroutine.
pub(super) fn suspend_in_block_on(
    shielded: bool,
    poll: &mut dyn FnMut(&mut Context<'_>) -> bool,
) -> bool {
    let Some(frame) = running() else {
        return false;
    };
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

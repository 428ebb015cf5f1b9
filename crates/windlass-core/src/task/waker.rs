//! Wakers: handles that ask for one more poll.
//!
//! They run no user code, never block and hold no lock while they wake.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::task::{Context, RawWaker, RawWakerVTable, Waker};

use crate::context;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
use crate::executor::external::{self, ExternalExecutor};
use crate::executor::local_set::LocalShared;
use crate::sched::pool::Pool;
use crate::task::entry::Entry;
use crate::task::header::{self, Header};
use crate::task::state::{Home, Wake};

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake_by_value, wake_by_ref, drop_waker);

/// The task behind a waker of ours.
pub(crate) fn task_of(waker: &Waker) -> Option<NonNull<Header>> {
    std::ptr::eq(waker.vtable(), &VTABLE)
        .then(|| NonNull::new(waker.data().cast_mut().cast()))
        .flatten()
}

/// A waker for the duration of one poll, which holds no reference of its own.
pub(crate) fn borrowed(header: NonNull<Header>) -> ManuallyDrop<Waker> {
    let raw = RawWaker::new(header.as_ptr().cast(), &VTABLE);
    // SAFETY: the vtable keeps the contract of `RawWaker`; the entry that is being resumed keeps
    // the task alive (rule 1), and the waker is never dropped.
    ManuallyDrop::new(unsafe { Waker::from_raw(raw) })
}

/// Calls `f` with a context whose waker is the task's own, for a body that polls futures on a stack
/// of its own: there a context of the resume would be gone after a switch.
///
/// # Safety
/// `header` points at the whole block of a task (see `context::current_header`), and the block is
/// there until `f` returns: `f` runs as part of that task's body.
#[inline]
pub unsafe fn with_context<R>(header: NonNull<Header>, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
    let waker = borrowed(header);
    f(&mut Context::from_waker(&waker))
}

/// Asks for one more poll.
#[inline]
pub(crate) fn wake(header: NonNull<Header>) {
    // A task that wakes itself needs no atomic: its worker looks at the flag after the poll.
    if context::self_wake(header) {
        return;
    }
    // SAFETY: rule 7: the caller's waker holds a reference.
    if unsafe { header.as_ref() }.state.wake() == Wake::Submit {
        submit(header);
    }
}

/// Queues a task that the caller has just moved from IDLE to HELD.
#[inline]
pub(crate) fn submit(header: NonNull<Header>) {
    // SAFETY: rule 1: moving the task to HELD handed its entry to us.
    let entry = unsafe { Entry::from_raw(header) };
    match entry.header().state().home() {
        // SAFETY: rule 6: the task is HELD by us and not queued yet, so its pool waits for it.
        Home::Pool => unsafe { Pool::submit_woken(entry.header().home().cast(), entry) },
        // SAFETY: the same holds for a local set.
        Home::Local => unsafe { LocalShared::submit(entry.header().home().cast(), entry) },
        Home::Blocking => unreachable!("a blocking body is HELD from spawn to COMPLETE"),
        Home::External | Home::Anywhere => submit_elsewhere(entry),
    }
}

/// Queues a task that is no pool's.
#[cold]
fn submit_elsewhere(entry: Entry) {
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    match entry.header().state().home() {
        // SAFETY: rule 6: HELD by us and not queued yet.
        Home::External => unsafe {
            ExternalExecutor::submit_woken(entry.header().home().cast(), entry)
        },
        _ => external::submit_anywhere(entry),
    }
    #[cfg(any(windlass_loom, windlass_shuttle))]
    unreachable!("{entry:?}: the models have no stations");
}

unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: rule 7: `data` came from a waker that is alive.
    unsafe { (*data.cast::<Header>()).state.retain() };
    RawWaker::new(data, &VTABLE)
}

unsafe fn wake_by_value(data: *const ()) {
    // SAFETY: wakers are made from non-null headers.
    let header = unsafe { NonNull::new_unchecked(data.cast_mut().cast::<Header>()) };
    let woken = if context::self_wake(header) {
        None
    } else {
        // SAFETY: rule 7: the waker's reference is counted until this very step.
        unsafe { header.as_ref() }.state.wake_by_value()
    };
    match woken {
        Some(Wake::Submit) => submit(header),
        Some(Wake::Nothing) => {}
        // SAFETY: rule 7: the waker's reference, still counted.
        None => unsafe { header::release(header) },
    }
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: wakers are made from non-null headers.
    wake(unsafe { NonNull::new_unchecked(data.cast_mut().cast()) });
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: wakers are made from non-null headers and own one reference (rule 7).
    unsafe { header::release(NonNull::new_unchecked(data.cast_mut().cast())) };
}

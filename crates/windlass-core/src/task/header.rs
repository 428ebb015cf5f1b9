//! The header of a task, its vtable, and counted references to it.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::task::Waker;

use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::task::join_waker::JoinWaker;
use crate::task::meta::{Meta, TaskId};
use crate::task::registry::Slot;
use crate::task::state::{State, Wake};
use crate::task::{block, state};

/// What the scheduler knows of a task. The body and its output follow in the same block.
#[derive(Debug)]
#[repr(C)]
pub struct Header {
    pub(crate) state: State,
    pub(crate) vtable: &'static Vtable,
    /// Rule 4: the task's home, and in a linked queue the link.
    pub(crate) link: AtomicPtr<Header>,
    /// Rule 5: null until the first suspension.
    pub(crate) slot: AtomicPtr<Slot>,
    pub(crate) meta: Meta,
    /// Guarded by rule 3.
    pub(crate) join_waker: UnsafeCell<JoinWaker>,
}

// SAFETY: every field is atomic, constant after the spawn, or guarded by rules 1 to 6; what `home`
// points at is itself `Sync`.
unsafe impl Send for Header {}
// SAFETY: as above.
unsafe impl Sync for Header {}

/// The operations that depend on the type of the body.
#[derive(Debug)]
pub(crate) struct Vtable {
    /// Size and alignment of the block.
    pub(crate) layout: Layout,
    /// Resumes the body; unless pending, its output or panic is in the cell afterwards. Rule 2.
    pub(crate) resume: unsafe fn(NonNull<Header>) -> ResumeOutcome,
    /// Drops the body and leaves the given reason as the output. Rule 2.
    pub(crate) cancel: unsafe fn(NonNull<Header>, Reason),
    /// How the body ends early. Rule 2.
    pub(crate) ending: unsafe fn(NonNull<Header>) -> Ending,
    /// Drops the output. Rule 2.
    pub(crate) drop_output: unsafe fn(NonNull<Header>),
    /// Moves the output to the given `Option<Result<T, JoinError>>`. Rule 2.
    pub(crate) take_output: unsafe fn(NonNull<Header>, *mut ()),
}

/// How resuming a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeOutcome {
    Pending,
    Ready,
    Panicked,
    /// The body unwound because it was cancelled.
    Cancelled,
}

/// How a body ends that is cancelled where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The body is dropped.
    Drop,
    /// The body is resumed, sees for itself that it is cancelled, and unwinds.
    Unwind,
    /// The body is inside of a section that nothing unwinds out of, and that ends by itself. If
    /// there is no time to wait for that, it is dropped.
    Wait,
}

/// Why a body was dropped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Cancelled,
    Expired,
}

/// A counted reference to a task of any type.
pub struct TaskRef(NonNull<Header>);

// SAFETY: rule 7 counts references atomically; everything reachable through a `TaskRef` is
// atomic, constant after the spawn, or guarded by rules 1 to 5.
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

impl TaskRef {
    /// Counts one more.
    ///
    /// # Safety
    /// Rule 7: `header` is alive for the duration of the call.
    pub(crate) unsafe fn retain(header: NonNull<Header>) -> TaskRef {
        // SAFETY: alive, says the caller.
        unsafe { header.as_ref() }.state.retain();
        TaskRef(header)
    }

    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0
    }

    /// Returns the task's header.
    pub fn header(&self) -> &Header {
        // SAFETY: rule 7: we hold a counted reference.
        unsafe { self.0.as_ref() }
    }

    /// Asks the task to be polled.
    pub fn wake(&self) {
        super::waker::wake(self.0);
    }

    /// Whether this waker is the task's own.
    #[inline]
    pub fn is_woken_by(&self, waker: &Waker) -> bool {
        super::waker::task_of(waker) == Some(self.0)
    }

    /// Asks the task to end.
    pub fn cancel(&self) {
        if self.header().state.cancel() == Wake::Submit {
            super::waker::submit(self.0);
        }
    }

    /// Asks the task to end, shielded or not.
    pub fn cancel_by_force(&self) {
        if self.header().state.cancel_by_force() == Wake::Submit {
            super::waker::submit(self.0);
        }
    }
}

impl Header {
    /// Tells the task from every other that is alive.
    pub fn id(&self) -> TaskId {
        self.meta
            .id()
            .unwrap_or_else(|| TaskId::of_block(std::ptr::from_ref(self).addr()))
    }

    /// Rule 4: the entry is in no linked queue. A `Pool` or a `LocalShared`, as the state says;
    /// null on a blocking thread.
    pub(crate) fn home(&self) -> *const () {
        self.link.load(Ordering::Relaxed).cast_const().cast()
    }

    /// Rule 4: the entry has left a linked queue.
    #[inline(always)]
    pub(crate) fn set_home(&self, home: *const ()) {
        self.link.store(home.cast_mut().cast(), Ordering::Relaxed);
    }

    /// Name and spawn location.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// A moment's copy of the state word.
    pub fn state(&self) -> state::Snapshot {
        self.state.load()
    }

    /// The running body enters a section that nothing may unwind out of; see `State::hold_open`.
    pub fn hold_open(&self) {
        self.state.hold_open();
    }

    /// The running body leaves that section.
    pub fn close(&self) {
        self.state.close();
    }

    pub(crate) fn is_registered(&self) -> bool {
        !self.slot.load(Ordering::Relaxed).is_null()
    }
}

impl Clone for TaskRef {
    fn clone(&self) -> Self {
        // SAFETY: rule 7: we hold a reference.
        unsafe { TaskRef::retain(self.0) }
    }
}

impl Drop for TaskRef {
    fn drop(&mut self) {
        // SAFETY: rule 7: this reference is counted and not used again.
        unsafe { release(self.0) }
    }
}

impl PartialEq for TaskRef {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl std::fmt::Debug for TaskRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let header = self.header();
        f.debug_struct("Task")
            .field("id", &format_args!("{}", header.id()))
            .field("name", &header.meta.name())
            .field("spawned_at", &format_args!("{}", header.meta.location()))
            .field("state", &header.state())
            .finish()
    }
}

/// Gives up one reference.
///
/// # Safety
/// Rule 7: the caller owns a counted reference and does not use it again.
#[inline]
pub(crate) unsafe fn release(header: NonNull<Header>) {
    // SAFETY: the reference is still counted.
    if unsafe { header.as_ref() }.state.release() {
        // SAFETY: it was the last.
        unsafe { free(header) };
    }
}

/// Frees the block.
///
/// # Safety
/// Rule 7: no reference is left, and body, output and join waker are gone.
// A call of its own, so that `release` stays small enough to be inlined: 2 % of the instructions of
// a spawn.
#[inline(never)]
pub(crate) unsafe fn free(header: NonNull<Header>) {
    // SAFETY: the caller has the block for itself; `Header` is its first field, and of the rest
    // nothing needs dropping (rule 7).
    unsafe {
        let layout = header.as_ref().vtable.layout;
        std::ptr::drop_in_place(header.as_ptr());
        block::free(header.cast(), layout);
    }
}

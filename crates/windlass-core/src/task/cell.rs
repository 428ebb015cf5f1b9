//! The block of one task, typed: header, then body or output.

use std::alloc::Layout;
use std::any::Any;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use crate::deep::nested;
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicPtr;
use crate::task::entry::Entry;
use crate::task::error::{JoinError, Unwound, contain, drop_payload};
use crate::task::header::{Ending, Header, Reason, ResumeOutcome, Vtable};
use crate::task::join_waker::JoinWaker;
use crate::task::meta::{Meta, TaskId};
use crate::task::state::State;
use crate::task::{Options, Residence, block, waker};

/// Anything that can be resumed until it has an output.
///
/// Report `Pending` only after arranging for the waker to be called.
pub trait Body {
    /// What it ends with.
    type Output;

    /// Goes on until the next suspension or the end.
    fn resume(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output>;

    /// How it ends when it is cancelled now. One that unwinds is resumed and raises [`Unwound`]
    /// (`resume_unwind`) where it stands; a body that is dropped all the same leaks what it cannot
    /// drop.
    fn ending(&self) -> Ending {
        Ending::Drop
    }
}

/// A future as a body.
#[derive(Debug)]
#[repr(transparent)]
pub struct FutureBody<F>(pub F);

impl<F: Future> Body for FutureBody<F> {
    type Output = F::Output;

    #[inline]
    fn resume(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: structural pinning of the only field; there is no Drop and no other access.
        unsafe { self.map_unchecked_mut(|body| &mut body.0) }.poll(cx)
    }
}

/// A closure as a body: it runs to its end in one go.
#[derive(Debug)]
pub struct Closure<F>(pub Option<F>);

// The closure is moved out before it is called; nothing is ever pinned inside.
impl<F> Unpin for Closure<F> {}

impl<T, F: FnOnce() -> T> Body for Closure<F> {
    type Output = T;

    fn resume(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<T> {
        let f = self
            .0
            .take()
            .expect("a completed body is never resumed (rule 2)");
        Poll::Ready(f())
    }
}

#[repr(C)]
struct Cell<B: Body> {
    header: Header,
    stage: UnsafeCell<Stage<B>>,
}

/// Which of the two it holds follows from the access protocol (rule 2), so no tag is stored: the
/// body until the task ends, then the output until it is taken or dropped.
union Stage<B: Body> {
    body: ManuallyDrop<B>,
    output: ManuallyDrop<Result<B::Output, JoinError>>,
}

/// Makes a task that is ready for its first queue. The join handle's reference, if `joinable`, is
/// counted and up to the caller.
///
/// The bounds are those of the caller: pools demand `Send`, local sets keep to one thread (rule 8).
#[inline(always)]
pub(crate) fn allocate<B: Body>(
    body: B,
    residence: Residence,
    id: impl FnOnce() -> TaskId,
    options: Options,
    joinable: bool,
) -> Entry {
    let layout = Layout::new::<Cell<B>>();
    let mut state = State::scheduled(residence.home, options.class, joinable);
    if residence.in_order {
        state = state.in_order();
    }
    let block = block::alloc(layout).cast::<Cell<B>>();
    let cell = Cell {
        header: Header {
            state,
            vtable: &Typed::<B>::VTABLE,
            link: AtomicPtr::new(residence.pointer.cast_mut().cast()),
            slot: AtomicPtr::new(std::ptr::null_mut()),
            meta: Meta::new(options, residence.numbered, id),
            join_waker: UnsafeCell::new(JoinWaker::NONE),
        },
        stage: UnsafeCell::new(Stage {
            body: ManuallyDrop::new(body),
        }),
    };
    // SAFETY: the block is fresh, large enough and aligned. Rule 1: this is the task's first and
    // only entry.
    unsafe {
        block.write(cell);
        Entry::from_raw(block.cast())
    }
}

struct Typed<B>(std::marker::PhantomData<B>);

impl<B: Body> Typed<B> {
    const VTABLE: Vtable = Vtable {
        layout: Layout::new::<Cell<B>>(),
        resume: resume::<B>,
        cancel: cancel::<B>,
        ending: ending::<B>,
        drop_output: drop_output::<B>,
        take_output: take_output::<B>,
    };
}

/// # Safety
/// Rules 1 and 2: the caller owns the entry; the stage holds a body of type `B`.
unsafe fn resume<B: Body>(header: NonNull<Header>) -> ResumeOutcome {
    let cell = header.cast::<Cell<B>>();
    // SAFETY: `header` is the first field of a `Cell<B>` (the vtable says so) and alive (rule 1).
    let stage = unsafe { &cell.as_ref().stage };
    let waker = waker::borrowed(header);
    let mut cx = Context::from_waker(&waker);
    let polled = catch_unwind(AssertUnwindSafe(|| {
        stage.with_mut(|stage| {
            // SAFETY: rule 2: the owner of the entry has the body for itself; it is never moved
            // out of the block, so it stays pinned.
            unsafe { Pin::new_unchecked(&mut *(*stage).body) }.resume(&mut cx)
        })
    }));
    let output = match polled {
        Ok(Poll::Pending) => return ResumeOutcome::Pending,
        Ok(Poll::Ready(output)) => Ok(output),
        Err(payload) => Err(payload),
    };
    // SAFETY: rule 2.
    unsafe { finish::<B>(cell, output) }
}

/// # Safety
/// Rules 1 and 2, as for `resume`.
unsafe fn ending<B: Body>(header: NonNull<Header>) -> Ending {
    // SAFETY: as in `resume`.
    let stage = unsafe { &header.cast::<Cell<B>>().as_ref().stage };
    // SAFETY: rule 2: the stage holds the body, and the owner of the entry looks at it.
    stage.with(|stage| unsafe { &(*stage).body }.ending())
}

/// # Safety
/// Rules 1 and 2, as for `resume`.
unsafe fn cancel<B: Body>(header: NonNull<Header>, reason: Reason) {
    let cell = header.cast::<Cell<B>>();
    // SAFETY: rule 2: the body is still there.
    let dropped = unsafe { drop_body(cell) };
    // SAFETY: rule 1.
    let header = unsafe { header.as_ref() };
    let error = match (dropped, reason) {
        (Err(payload), _) => JoinError::panicked(header, payload),
        (Ok(()), Reason::Cancelled) => JoinError::cancelled(header),
        (Ok(()), Reason::Expired) => JoinError::expired(header),
    };
    // SAFETY: rule 2: the body is gone.
    unsafe { write_output(cell, Err(error)) };
}

/// Replaces the body by its output; a panic of the body's drop becomes the output.
///
/// # Safety
/// Rule 2: the stage holds the body.
#[inline]
unsafe fn finish<B: Body>(
    cell: NonNull<Cell<B>>,
    output: Result<B::Output, Box<dyn Any + Send>>,
) -> ResumeOutcome {
    // SAFETY: rule 2.
    let dropped = unsafe { drop_body(cell) };
    // SAFETY: rule 1.
    let header = unsafe { &cell.as_ref().header };
    let (output, resumed) = match (output, dropped) {
        (Ok(output), Ok(())) => (Ok(output), ResumeOutcome::Ready),
        (Err(payload), Ok(())) if payload.is::<Unwound>() => {
            (Err(JoinError::cancelled(header)), ResumeOutcome::Cancelled)
        }
        (Err(payload), dropped) => {
            // The first panic is the one that is reported.
            dropped.err().into_iter().for_each(drop_payload);
            (
                Err(JoinError::panicked(header, payload)),
                ResumeOutcome::Panicked,
            )
        }
        (Ok(output), Err(payload)) => {
            contain(|| drop(output));
            (
                Err(JoinError::panicked(header, payload)),
                ResumeOutcome::Panicked,
            )
        }
    };
    // SAFETY: rule 2: the body is gone.
    unsafe { write_output(cell, output) };
    resumed
}

/// Drops the body in place, because it is pinned; gives the payload of a panic.
///
/// # Safety
/// Rule 2: the stage holds the body, and it is not used again.
#[inline]
unsafe fn drop_body<B: Body>(cell: NonNull<Cell<B>>) -> Result<(), Box<dyn Any + Send>> {
    if !std::mem::needs_drop::<B>() {
        return Ok(());
    }
    // SAFETY: rule 1: alive.
    let stage = unsafe { &cell.as_ref().stage };
    catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: rule 2.
        stage.with_mut(|stage| unsafe { ManuallyDrop::drop(&mut (*stage).body) });
    }))
}

/// # Safety
/// Rule 2: the stage holds nothing that needs dropping.
#[inline]
unsafe fn write_output<B: Body>(cell: NonNull<Cell<B>>, output: Result<B::Output, JoinError>) {
    let output = ManuallyDrop::new(output);
    // SAFETY: rule 1: alive; rule 2: ours.
    unsafe { &cell.as_ref().stage }.with_mut(|stage| unsafe { stage.write(Stage { output }) });
}

/// # Safety
/// Rule 2: the stage holds an output, and it belongs to the caller.
unsafe fn drop_output<B: Body>(header: NonNull<Header>) {
    // SAFETY: rule 1: alive.
    let stage = unsafe { &header.cast::<Cell<B>>().as_ref().stage };
    // A panicking drop of an unwanted output ends here.
    let drop_it = || {
        contain(|| {
            // SAFETY: rule 2.
            stage.with_mut(|stage| unsafe { ManuallyDrop::drop(&mut (*stage).output) });
        });
    };
    if std::mem::needs_drop::<B::Output>() {
        nested(drop_it);
    } else {
        drop_it();
    }
}

/// # Safety
/// Rule 2: the stage holds an output, it belongs to the caller, and `into` points at an
/// `Option<Result<B::Output, JoinError>>`.
unsafe fn take_output<B: Body>(header: NonNull<Header>, into: *mut ()) {
    // SAFETY: rule 1: alive.
    let stage = unsafe { &header.cast::<Cell<B>>().as_ref().stage };
    // SAFETY: rule 2.
    let output = stage.with_mut(|stage| unsafe { ManuallyDrop::take(&mut (*stage).output) });
    // SAFETY: the caller vouches for the type of `into`.
    unsafe { *into.cast::<Option<Result<B::Output, JoinError>>>() = Some(output) };
}

/// A task that holds nothing is one cache line, and 56 bytes are what glibc fits into one.
#[cfg(all(target_pointer_width = "64", not(any(windlass_loom, windlass_shuttle))))]
const _: () = assert!(size_of::<Cell<FutureBody<std::future::Ready<()>>>>() == 56);

//! Handles to a spawned task: await it, abort it, or let it go.

use std::future::Future;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use crate::task::budget;
use crate::task::error::JoinError;
use crate::task::header::{self, Header, TaskRef};
use crate::task::join_waker::JoinWaker;
use crate::task::meta::TaskId;

/// Awaits the output of a task, from anywhere: another task, another runtime, `block_on`, or a
/// plain thread.
///
/// Dropping the handle detaches the task: it goes on, and its output is dropped at its end.
/// Awaiting is cancel-safe: a dropped await loses nothing.
pub struct JoinHandle<T> {
    header: NonNull<Header>,
    /// The output has been given out.
    taken: bool,
    output: PhantomData<T>,
}

// SAFETY: the handle moves a `T` out of the task at most (rule 2), so it may go where a `T` may.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared handle gives out no `T`.
unsafe impl<T: Send> Sync for JoinHandle<T> {}
impl<T> Unpin for JoinHandle<T> {}
// What the task's body does when it panics is contained in the task: a handle sees a whole output
// or none.
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}
impl UnwindSafe for AbortHandle {}
impl RefUnwindSafe for AbortHandle {}

/// Ends a task from elsewhere.
#[derive(Clone)]
pub struct AbortHandle(TaskRef);

impl<T> JoinHandle<T> {
    /// # Safety
    /// Rules 2 and 7: the caller hands over the join handle's counted reference of a task whose
    /// output is a `T`.
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        JoinHandle {
            header,
            taken: false,
            output: PhantomData,
        }
    }

    fn header(&self) -> &Header {
        // SAFETY: rule 7: the handle holds a reference.
        unsafe { self.header.as_ref() }
    }

    /// Asks the task to end. Its body is dropped on a worker, then this handle resolves with
    /// `Cancelled`; a task that completes first keeps its output. A shielded section runs to its
    /// end before that.
    pub fn abort(&self) {
        self.task_ref().cancel();
    }

    /// A handle that can only abort, and does not keep the output alive.
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle(self.task_ref())
    }

    /// True once the output (or the error) is there.
    pub fn is_finished(&self) -> bool {
        self.header().state().is_complete()
    }

    /// Lets the task go on without this handle.
    pub fn detach(self) {}

    /// The task's id.
    pub fn id(&self) -> TaskId {
        self.header().id()
    }

    fn task_ref(&self) -> TaskRef {
        // SAFETY: rule 7: the handle holds a reference.
        unsafe { TaskRef::retain(self.header) }
    }

    /// Takes the output if the task is complete.
    ///
    /// # Panics
    /// If it has been taken before.
    fn take(&mut self) -> Result<T, JoinError> {
        assert!(
            !self.taken,
            "this JoinHandle has given its output out; it can be awaited once"
        );
        self.taken = true;
        let mut output: Option<Result<T, JoinError>> = None;
        // SAFETY: rule 2: COMPLETE was seen with Acquire and JOIN_INTEREST is ours; `T` is the
        // body's output type.
        unsafe {
            (self.header().vtable.take_output)(self.header, (&raw mut output).cast());
        }
        let output = output.expect("take_output fills it");
        if let Err(error) = &output {
            error.observed(self.header());
        }
        output
    }

    /// Leaves `waker` for the completer. False: the task completed meanwhile.
    fn leave_waker(&self, waker: &Waker) -> bool {
        let header = self.header();
        if header.state().has_join_waker() {
            // SAFETY: rule 3: set, both sides only read.
            let same = header
                .join_waker
                .with(|there| unsafe { &*there }.will_wake(waker));
            if same {
                return !header.state().is_complete();
            }
            if !header.state.unset_join_waker() {
                return false;
            }
        }
        let waker = JoinWaker::new(waker);
        // SAFETY: rule 3: not set and not complete at our last change; a completer that comes now
        // does not look at a waker that is not set.
        let old = header
            .join_waker
            .with_mut(|there| unsafe { std::mem::replace(&mut *there, waker) });
        let is_set = header.state.set_join_waker();
        // Users' code, so only when the state says what is there.
        drop(old);
        is_set
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.header().state().is_complete() && self.leave_waker(cx.waker()) {
            return Poll::Pending;
        }
        match budget::spend(cx) {
            Poll::Ready(spent) => {
                spent.made_progress();
                Poll::Ready(self.take())
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let header = self.header();
        if header.state.detach() {
            return;
        }
        let owned = header.state.forget_join();
        if owned.output && !self.taken {
            // SAFETY: rule 2: complete, the interest was ours, and the output is still there.
            unsafe { (header.vtable.drop_output)(self.header) };
        }
        if owned.waker {
            // SAFETY: rule 3: not set any more, or the completer is done with it.
            drop(
                header
                    .join_waker
                    .with_mut(|waker| unsafe { (*waker).take() }),
            );
        }
        // SAFETY: rule 7: our reference, not used again.
        unsafe { header::release(self.header) };
    }
}

impl AbortHandle {
    /// Asks the task to end; see [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.0.cancel();
    }

    /// True once the task has ended.
    pub fn is_finished(&self) -> bool {
        self.0.header().state().is_complete()
    }

    /// The task's id.
    pub fn id(&self) -> TaskId {
        self.0.header().id()
    }
}

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("JoinHandle").field(&self.task_ref()).finish()
    }
}

impl std::fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AbortHandle").field(&self.0).finish()
    }
}

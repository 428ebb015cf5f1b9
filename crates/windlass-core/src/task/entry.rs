//! The scheduler's reference to a task, and what it means to run it.

use std::ptr::NonNull;

use crate::context;
use crate::task::error::contain;
use crate::task::header::{self, Ending, Header, Reason, ResumeOutcome, TaskRef};
use crate::task::registry;
use crate::task::state::{Completion, Park, Start};

/// The scheduler's reference to a task that is not complete (rule 1).
///
/// It has no destructor: an entry is queued, run, or given back to the registry; dropping one
/// would lose a task.
#[derive(PartialEq, Eq)]
#[must_use = "dropping an entry loses the task"]
pub struct Entry(NonNull<Header>);

// SAFETY: rule 1: an entry is the exclusive right to run the task; pools only accept `Send`
// bodies, and the entries of local sets do not leave their inbox other than on the home thread
// (rule 8).
unsafe impl Send for Entry {}

/// The way in which running an entry ended.
#[derive(Debug)]
#[must_use]
pub enum RunOutcome {
    /// The task is idle, and no longer belongs to the caller.
    Idle,
    /// The task wants another turn, at the tail.
    Again(Entry),
    /// The task is complete.
    Complete,
}

/// What a task needs from the executor that runs it.
pub trait Scheduler {
    /// Keeps hold of a task that is about to be idle, so that shutdown finds it.
    fn register(&self, header: &Header);

    /// Whether suspended tasks are to be cancelled instead.
    fn is_stopping(&self) -> bool;

    /// Reports a panic or a cancellation to the flight recorder.
    fn ended_early(&self, _header: &Header, _panicked: bool) {}
}

impl Entry {
    /// # Safety
    /// Rule 1: the caller hands over the task's only entry.
    #[inline]
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Entry {
        Entry(header)
    }

    /// A task without a pool, for the models: its wakes go nowhere, so it must not be left idle.
    #[cfg(windlass_loom)]
    pub fn for_model<F>(future: F) -> (Entry, crate::task::JoinHandle<F::Output>)
    where
        F: std::future::Future + Send + 'static,
        F::Output: Send + 'static,
    {
        use crate::task::state::Home;
        use crate::task::{FutureBody, Options, Residence, SpawnRequest, TaskId};

        let id = || TaskId::numbered(1, 1);
        SpawnRequest::new(FutureBody(future), Options::here())
            .allocate(Residence::new(Home::Blocking, std::ptr::null()), id)
    }

    /// A reference to the task.
    pub fn task(&self) -> TaskRef {
        // SAFETY: rule 1: the entry keeps the task alive.
        unsafe { TaskRef::retain(self.0) }
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> NonNull<Header> {
        self.0
    }

    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<Header> {
        self.0
    }

    /// Returns the task's header.
    #[inline]
    pub fn header(&self) -> &Header {
        // SAFETY: rule 1: the entry keeps the task alive.
        unsafe { self.0.as_ref() }
    }

    /// Resumes the body once and files the task accordingly.
    #[inline]
    pub fn run(self, scheduler: &impl Scheduler) -> RunOutcome {
        let header = self.header();
        if header.state.start() == Start::Cancel && !self.unwinds() {
            return self.cancel(scheduler);
        }
        let turn = context::begin_turn(self.0);
        // SAFETY: rules 1 and 2: we own the entry and the task is not complete.
        let resumed = unsafe { (header.vtable.resume)(self.0) };
        let woke_itself = turn.end();
        if resumed != ResumeOutcome::Pending {
            if resumed == ResumeOutcome::Ready {
                self.complete();
            } else {
                self.end_unwound(scheduler, resumed);
            }
            return RunOutcome::Complete;
        }
        if woke_itself {
            // Still HELD: there is nothing to report.
            return RunOutcome::Again(self);
        }
        self.suspend(scheduler)
    }

    /// The body has panicked, or has unwound because it was cancelled.
    #[cold]
    #[inline(never)]
    fn end_unwound(self, scheduler: &impl Scheduler, resumed: ResumeOutcome) {
        scheduler.ended_early(self.header(), resumed == ResumeOutcome::Panicked);
        self.complete();
        // What the task dropped while it unwound.
        crate::executor::local_set::finish_orphans();
    }

    fn suspend(self, scheduler: &impl Scheduler) -> RunOutcome {
        let header = self.header();
        if !header.is_registered() {
            scheduler.register(header);
        }
        if scheduler.is_stopping() {
            // HELD: this marks the task, and nothing is submitted.
            let _ = header.state.cancel();
        }
        match header.state.park() {
            Park::Idle => RunOutcome::Idle,
            Park::Requeue => RunOutcome::Again(self),
            // It sees that at its next turn.
            Park::Cancel if self.unwinds() => RunOutcome::Again(self),
            Park::Cancel => self.cancel(scheduler),
        }
    }

    /// Whether the body wants to see by itself that it is cancelled.
    #[cold]
    pub(crate) fn unwinds(&self) -> bool {
        self.ending() == Ending::Unwind
    }

    /// How the body ends if it is cancelled where it stands.
    pub(crate) fn ending(&self) -> Ending {
        // SAFETY: rules 1 and 2: we own the entry and the body is still there.
        unsafe { (self.header().vtable.ending)(self.0) }
    }

    /// Drops the body of a cancelled task; its join handle resolves after that. A coroutine that
    /// has begun is not resumed to unwind: it is leaked.
    pub(crate) fn cancel(self, scheduler: &impl Scheduler) -> RunOutcome {
        self.end_early(scheduler, Reason::Cancelled)
    }

    /// Drops a body whose time to start has passed.
    pub fn expire(self, scheduler: &impl Scheduler) {
        let _ = self.end_early(scheduler, Reason::Expired);
    }

    fn end_early(self, scheduler: &impl Scheduler, reason: Reason) -> RunOutcome {
        let header = self.header();
        scheduler.ended_early(header, false);
        // The drop may spawn, wake and look at its task like a poll.
        let turn = context::begin_turn(self.0);
        // SAFETY: rules 1 and 2: we own the entry and the body is still there.
        unsafe { (header.vtable.cancel)(self.0, reason) };
        turn.end();
        self.complete();
        RunOutcome::Complete
    }

    /// Drops a task that no scheduler accepted, where it stands; its join handle resolves.
    pub fn refuse(self) {
        struct Nobody;
        impl Scheduler for Nobody {
            fn register(&self, _: &Header) {}
            fn is_stopping(&self) -> bool {
                true
            }
        }
        let _ = self.cancel(&Nobody);
    }

    /// Files the output: to the join handle, to the joiner's waker, or away.
    #[inline]
    fn complete(self) {
        let header = self.header();
        if header.is_registered() {
            registry::deregister(header);
        }
        match header.state.complete() {
            Completion::Handed => {}
            Completion::WakeJoiner => self.wake_joiner(),
            // Ours is the only reference now, and may not be after the output is dropped: its
            // destructor is user code in this task's turn, and can keep a waker or a shield.
            Completion::Alone | Completion::DropOutput => {
                self.drop_output();
                if header.state.complete_without_output() == Completion::Alone {
                    self.free_empty();
                }
            }
        }
    }

    /// Drops an output that will never be taken. It is user code on a worker, so it
    /// counts as the task's turn: it must not block.
    fn drop_output(&self) {
        let turn = context::begin_turn(self.0);
        // SAFETY: rule 2: there is no join handle, and the output is there.
        unsafe { (self.header().vtable.drop_output)(self.0) };
        turn.end();
    }

    fn free_empty(self) {
        // SAFETY: rule 7: ours is the last reference, and the output is gone.
        unsafe { header::free(self.0) };
    }

    fn wake_joiner(self) {
        let header = self.header();
        // A foreign waker may panic; that must not take the worker down.
        contain(|| {
            header.join_waker.with(|waker| {
                // SAFETY: rule 3: JOIN_WAKER is set, both sides only read.
                unsafe { &*waker }.wake_by_ref();
            });
        });
        if header.state.end_join_wake() {
            // SAFETY: rule 3: the handle is gone, the waker is ours.
            let waker = header
                .join_waker
                .with_mut(|waker| unsafe { (*waker).take() });
            contain(|| drop(waker));
            // The handle dropped the output too: `forget_join` said so.
        }
        // SAFETY: rule 7: the scheduler's reference, not used again.
        unsafe { header::release(self.0) };
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entry({})", self.header().id())
    }
}

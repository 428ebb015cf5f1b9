//! A coroutine as the body of a task, and the raw that is also driven by hand.

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use corosensei::CoroutineResult;
use windlass_core::context::{self, Confinement};
use windlass_core::sched::fork::{self, Leftovers};
use windlass_core::sync::thread::{self, ThreadId};
use windlass_core::task::{Body, Ending, Options};
use windlass_core::thread_end;
use windlass_core::unwind::PanicPayload;

use super::frame::{Frame, suspend_in_block_on};
use super::slab::SizeClass;
use super::stack::Stack;
use super::{check, leak, overflow, sanitizer};
#[cfg(feature = "tracing")]
use crate::task_span::BodySpan;
#[cfg(feature = "tracing")]
use windlass_core::task::Unwound;

/// A coroutine that ends with `T` or a panic.
type Begun<T> = corosensei::Coroutine<(), (), Result<T, PanicPayload>, Stack>;

/// A closure, then a stack that runs it.
pub(super) struct RawCoroutine<F, T> {
    stage: Stage<F, T>,
    frame: Frame,
    /// It ends on the thread on which it begins, and is counted there.
    stays: bool,
}

enum Stage<F, T> {
    Fresh(F, SizeClass, Option<Stack>),
    /// Dropped only through `into_stack`, when it is done (rule 6).
    Begun(ManuallyDrop<Begun<T>>),
    Over,
}

impl<T, F: FnOnce() -> T> RawCoroutine<F, T> {
    /// `stack`: one that was taken beforehand.
    pub(super) fn new(f: F, size: SizeClass, stack: Option<Stack>) -> RawCoroutine<F, T> {
        RawCoroutine {
            stage: Stage::Fresh(f, size, stack),
            frame: Frame::default(),
            stays: true,
        }
    }

    pub(super) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// A stack has frames on it that have not ended.
    pub(super) fn has_begun(&self) -> bool {
        matches!(self.stage, Stage::Begun(_))
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Goes on until the next suspension or the end.
    ///
    /// # Panics
    /// When the coroutine has ended, or began on a worker of another pool (rule 8).
    pub(super) fn resume(self: Pin<&mut Self>) -> Poll<Result<T, PanicPayload>> {
        // SAFETY: nothing is moved out that has to stay: the frame stays (rule 1), a closure that
        // has not begun may move.
        let this = unsafe { self.get_unchecked_mut() };
        if let Stage::Fresh(..) = this.stage
            && let Err(payload) = this.begin()
        {
            return Poll::Ready(Err(payload));
        }
        let Stage::Begun(coroutine) = &mut this.stage else {
            panic!("a coroutine that has ended cannot be resumed");
        };
        assert!(
            this.frame.is_on_its_pool(),
            "a coroutine goes on where it began: on the workers of its runtime, or on a thread \
             that is none"
        );
        let leftovers = match this.frame.is_driven_by_hand() {
            true => Leftovers::RunHere,
            false => Leftovers::HandOver,
        };
        let forks = fork::begin_resume();
        let bounds = this.frame.bounds();
        let switched = this.frame.during_resume(|| {
            let here = sanitizer::Side::default();
            here.leave_for(bounds);
            let switched = coroutine.resume(());
            here.arrive();
            switched
        });
        check::switched(&this.frame);
        match switched {
            CoroutineResult::Yield(()) => {
                if this.stays {
                    thread_end::note_suspended();
                }
                check::suspended(&this.frame);
                fork::end_resume(forks, leftovers);
                Poll::Pending
            }
            CoroutineResult::Return(result) => {
                this.give_stack_back();
                fork::end_resume(forks, leftovers);
                Poll::Ready(result)
            }
        }
    }

    /// Puts the closure onto a stack.
    fn begin(&mut self) -> Result<(), PanicPayload> {
        let Stage::Fresh(f, size, stack) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only a fresh one begins");
        };
        overflow::install();
        windlass_core::set_suspend(suspend_in_block_on);
        let stack = match stack.map_or_else(|| Stack::take(size), Ok) {
            Ok(stack) => stack,
            Err(error) => return Err(Box::new(error)),
        };
        if let Some(task) = self.frame.header() {
            stack
                .slot()
                .set_owner(task.id().get(), task.meta().location());
        }
        self.frame.set_bounds(stack.bounds());
        self.frame.note_pool();
        check::begin(&self.frame);
        let frame = &raw const self.frame;
        let run = move |yielder: &corosensei::Yielder<(), ()>, ()| {
            // SAFETY: rule 1.
            let frame = unsafe { &*frame };
            frame.begin(yielder);
            let ended = catch_unwind(AssertUnwindSafe(f));
            frame.end();
            ended
        };
        // SAFETY: what the closure borrows outlives the coroutine's frames: it is 'static, or
        // `scope` waits for their end; and they are never dropped half-way (rule 6).
        let coroutine = unsafe { Begun::with_stack_unchecked(stack, run) };
        self.stage = Stage::Begun(ManuallyDrop::new(coroutine));
        if self.stays {
            thread_end::note_begun();
        }
        Ok(())
    }

    fn give_stack_back(&mut self) {
        if let Stage::Begun(coroutine) = std::mem::replace(&mut self.stage, Stage::Over) {
            if self.stays {
                thread_end::note_ended();
            }
            ManuallyDrop::into_inner(coroutine).into_stack().give_back();
        }
    }
}

impl<F, T> Drop for RawCoroutine<F, T> {
    fn drop(&mut self) {
        if let Stage::Begun(_) = self.stage {
            // Rule 6.
            leak::report(&self.frame);
        }
    }
}

/// Where a coroutine began, and so where it goes on.
enum Home {
    /// Its task is pinned to a thread that runs tasks until it ends.
    Pinned,
    /// On this thread, until the thread's destructors begin: in this epoch, inside of a call that
    /// runs tasks. After the outermost one the thread is marked (`thread_end`).
    OnThread(ThreadId, u64),
}

impl Home {
    fn here() -> Home {
        match context::pin() {
            Confinement::Pinned => Home::Pinned,
            Confinement::OnThread => Home::OnThread(thread::current().id(), thread_end::epoch()),
        }
    }

    fn is_here(&self) -> bool {
        match self {
            Home::Pinned => true,
            Home::OnThread(thread, epoch) => {
                *thread == thread::current().id()
                    && *epoch == thread_end::epoch()
                    && context::runs_tasks()
            }
        }
    }

    /// # Panics
    /// Elsewhere.
    fn check(&self) {
        assert!(
            self.is_here(),
            "a coroutine goes on on the thread it began on, inside a block_on or a runtime's task: \
             run a local set inside of one, and a simulated runtime on one thread"
        );
    }
}

/// A coroutine that a pool or a local set runs.
pub(super) struct CoroutineBody<F, T> {
    raw: RawCoroutine<F, T>,
    /// Where it began, and who sees to it that it stays there; none: it has not begun, or migrates.
    home: Option<Home>,
    begun: bool,
    #[cfg(feature = "tracing")]
    span: Option<BodySpan>,
}

// SAFETY: what has not begun is a closure that is `Send` (see the bounds of those who make one).
// What has begun stays on its thread (its queue or `home` sees to it, which `resume` and `ending`
// look at), or its maker has vouched for what is on its stack (`spawn_migrating`).
unsafe impl<F: Send, T: Send> Send for CoroutineBody<F, T> {}

impl<T, F: FnOnce() -> T> CoroutineBody<F, T> {
    pub(super) fn new(
        mut raw: RawCoroutine<F, T>,
        migrates: bool,
        options: &Options,
    ) -> CoroutineBody<F, T> {
        #[cfg(not(feature = "tracing"))]
        let _ = options;
        raw.stays = !migrates;
        CoroutineBody {
            raw,
            home: None,
            begun: false,
            #[cfg(feature = "tracing")]
            span: BodySpan::of(options),
        }
    }
}

impl<F, T> CoroutineBody<F, T> {
    fn is_at_home(&self) -> bool {
        self.home.as_ref().is_none_or(Home::is_here)
    }

    /// Gives the output, or goes on unwinding on the worker's stack.
    fn end(&mut self, ended: Result<T, PanicPayload>) -> T {
        #[cfg(feature = "tracing")]
        if let Some(span) = &mut self.span {
            match &ended {
                Ok(_) => span.completed(),
                Err(payload) if payload.is::<Unwound>() => {}
                Err(_) => span.panicked(),
            }
        }
        match ended {
            Ok(output) => output,
            Err(payload) => resume_unwind(payload),
        }
    }
}

impl<T, F: FnOnce() -> T> Body for CoroutineBody<F, T> {
    type Output = T;

    fn resume(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<T> {
        // SAFETY: the raw is pinned with the body and not moved out.
        let (this, raw) = unsafe {
            let this = self.get_unchecked_mut();
            let raw = &raw mut this.raw;
            (this, Pin::new_unchecked(&mut *raw))
        };
        if !this.begun {
            this.begun = true;
            raw.frame().set_task(context::current_header());
            if raw.stays {
                this.home = Some(Home::here());
            }
        }
        if let Some(home) = &this.home {
            home.check();
        }
        // On the worker's stack: nothing of it is on the coroutine's over a suspension.
        #[cfg(feature = "tracing")]
        let inside = this.span.as_ref().map(BodySpan::enter);
        let resumed = raw.resume();
        #[cfg(feature = "tracing")]
        drop(inside);
        match resumed {
            Poll::Pending => Poll::Pending,
            Poll::Ready(ended) => Poll::Ready(this.end(ended)),
        }
    }

    fn ending(&self) -> Ending {
        let frame = self.raw.frame();
        // Its frames must not run on a thread that is not theirs. One that goes on waiting never
        // unwinds.
        if !self.raw.has_begun() || frame.has_given_up() || !self.is_at_home() {
            return Ending::Drop;
        }
        // In a shielded section it is cancelled only by force, and nothing may unwind out of it.
        match (frame.is_shielded(), frame.is_in_foreign_code()) {
            (false, _) => Ending::Unwind,
            (true, false) => Ending::Wait,
            (true, true) => Ending::Drop,
        }
    }
}

impl<F, T> Drop for CoroutineBody<F, T> {
    fn drop(&mut self) {
        if let Some(Home::Pinned) = self.home {
            context::unpin();
        }
    }
}

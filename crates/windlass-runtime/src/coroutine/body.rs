//! A coroutine as the body of a task, and the machine that is also driven by hand.

use std::any::Any;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use corosensei::CoroutineResult;
use windlass_core::context;
use windlass_core::sched::fork;
use windlass_core::sync::thread::{self, ThreadId};
use windlass_core::task::{Body, Ending, Options};

use super::frame::{Frame, suspend_in_block_on};
use super::slab::SizeClass;
use super::stack::Stack;
use super::{check, leak, overflow};
#[cfg(feature = "tracing")]
use crate::task_span::BodySpan;
#[cfg(feature = "tracing")]
use windlass_core::task::Unwound;

type Payload = Box<dyn Any + Send>;
/// A coroutine that ends with `T` or a panic.
type Begun<T> = corosensei::Coroutine<(), (), Result<T, Payload>, Stack>;

/// A closure, then a stack that runs it.
pub(super) struct Machine<F, T> {
    stage: Stage<F, T>,
    frame: Frame,
}

enum Stage<F, T> {
    Fresh(F, SizeClass, Option<Stack>),
    /// Dropped only through `into_stack`, when it is done (rule 6).
    Begun(ManuallyDrop<Begun<T>>),
    Over,
}

impl<T, F: FnOnce() -> T> Machine<F, T> {
    /// `stack`: one that was taken beforehand.
    pub(super) fn new(f: F, size: SizeClass, stack: Option<Stack>) -> Machine<F, T> {
        Machine {
            stage: Stage::Fresh(f, size, stack),
            frame: Frame::default(),
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
    pub(super) fn resume(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Payload>> {
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
        match this.frame.during_resume(cx, || coroutine.resume(())) {
            CoroutineResult::Yield(()) => {
                check::switched(&this.frame);
                fork::suspended();
                Poll::Pending
            }
            CoroutineResult::Return(result) => {
                check::switched(&this.frame);
                this.give_stack_back();
                Poll::Ready(result)
            }
        }
    }

    /// Puts the closure onto a stack.
    fn begin(&mut self) -> Result<(), Payload> {
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
        self.frame.set_bounds(stack.lowest(), stack.top());
        check::begin(&self.frame);
        let frame = &raw const self.frame;
        let run = move |yielder: &corosensei::Yielder<(), ()>, ()| {
            // SAFETY: rule 1.
            unsafe { &*frame }.begin(yielder);
            catch_unwind(AssertUnwindSafe(f))
        };
        // SAFETY: what the closure borrows outlives the coroutine's frames: it is 'static, or
        // `scope` waits for their end; and they are never dropped half-way (rule 6).
        let coroutine = unsafe { Begun::with_stack_unchecked(stack, run) };
        self.stage = Stage::Begun(ManuallyDrop::new(coroutine));
        Ok(())
    }

    fn give_stack_back(&mut self) {
        if let Stage::Begun(coroutine) = std::mem::replace(&mut self.stage, Stage::Over) {
            ManuallyDrop::into_inner(coroutine).into_stack().give_back();
        }
    }
}

impl<F, T> Drop for Machine<F, T> {
    fn drop(&mut self) {
        if let Stage::Begun(_) = self.stage {
            // Rule 6.
            leak::report(&self.frame);
        }
    }
}

/// A coroutine that a pool or a local set runs.
pub(super) struct CoroutineBody<F, T> {
    machine: Machine<F, T>,
    /// May go on on another thread.
    migrates: bool,
    pinned: bool,
    begun: bool,
    /// The thread it began on, where nobody else sees to it that it stays there: a local set's, a single
    /// one's, a simulation's, which may be run and dropped by different ones.
    home: Option<ThreadId>,
    #[cfg(feature = "tracing")]
    span: Option<BodySpan>,
}

// SAFETY: what has not begun is a closure that is `Send` (see the bounds of those who make one). What
// has begun stays on its thread (`pinned`, or `home`, which `resume` and `ending` look at), or its maker
// has vouched for what is on its stack (`spawn_migrating`).
unsafe impl<F: Send, T: Send> Send for CoroutineBody<F, T> {}

impl<T, F: FnOnce() -> T> CoroutineBody<F, T> {
    pub(super) fn new(
        machine: Machine<F, T>,
        migrates: bool,
        options: &Options,
    ) -> CoroutineBody<F, T> {
        #[cfg(not(feature = "tracing"))]
        let _ = options;
        CoroutineBody {
            machine,
            migrates,
            pinned: false,
            begun: false,
            home: None,
            #[cfg(feature = "tracing")]
            span: BodySpan::of(options),
        }
    }
}

impl<F, T> CoroutineBody<F, T> {
    fn is_at_home(&self) -> bool {
        self.home.is_none_or(|home| home == thread::current().id())
    }

    /// Gives the output, or goes on unwinding on the worker's stack.
    fn end(&mut self, ended: Result<T, Payload>) -> T {
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

    fn resume(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // SAFETY: the machine is pinned with the body and not moved out.
        let (this, machine) = unsafe {
            let this = self.get_unchecked_mut();
            let machine = &raw mut this.machine;
            (this, Pin::new_unchecked(&mut *machine))
        };
        if !this.begun {
            this.begun = true;
            machine.frame().set_task(context::current_header());
            this.pinned = !this.migrates && context::pin();
            this.home = (!this.migrates && !this.pinned).then(|| thread::current().id());
        }
        assert!(
            this.is_at_home(),
            "a coroutine goes on on the thread it began on, and this is another: run a simulated \
             runtime on one thread"
        );
        // On the worker's stack: nothing of it is on the coroutine's over a suspension.
        #[cfg(feature = "tracing")]
        let inside = this.span.as_ref().map(BodySpan::enter);
        let resumed = machine.resume(cx);
        #[cfg(feature = "tracing")]
        drop(inside);
        match resumed {
            Poll::Pending => Poll::Pending,
            Poll::Ready(ended) => Poll::Ready(this.end(ended)),
        }
    }

    fn ending(&self) -> Ending {
        // In a shielded section it is cancelled only by force, and nothing may unwind out of it. Nor may
        // its frames run on a thread that is not theirs.
        let unwinds = !self.machine.frame().is_shielded() && self.is_at_home();
        if self.machine.has_begun() && unwinds {
            Ending::Unwind
        } else {
            Ending::Drop
        }
    }
}

impl<F, T> Drop for CoroutineBody<F, T> {
    fn drop(&mut self) {
        if self.pinned {
            context::unpin();
        }
    }
}

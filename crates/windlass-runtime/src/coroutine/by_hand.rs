//! A coroutine that is driven by hand, without a runtime.

use std::fmt;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use windlass_core::sync::thread::panicking;
use windlass_core::task::Unwound;

use super::DEFAULT_STACK;
use super::body::Machine;
use super::slab::{SizeClass, StackError};
use super::stack::Stack;

/// A coroutine that goes on when [`resume`](Coroutine::resume) is called, on this thread.
///
/// ```
/// use windlass_runtime::coroutine::{self, Coroutine, Resumed};
///
/// let mut steps = Coroutine::new(|| {
///     for _ in 0..2 {
///         coroutine::yield_now();
///     }
///     "done"
/// })?;
/// assert_eq!(steps.resume(), Resumed::Suspended);
/// assert_eq!(steps.resume(), Resumed::Suspended);
/// assert_eq!(steps.resume(), Resumed::Finished("done"));
/// # Ok::<(), coroutine::StackError>(())
/// ```
/// A wait inside polls its future once per resume: nobody is told when it is ready. Dropping a
/// coroutine that has begun lets it unwind, as a cancellation does.
pub struct Coroutine<T> {
    machine: Pin<Box<Machine<Code<T>, T>>>,
}

type Code<T> = Box<dyn FnOnce() -> T>;

/// How far a coroutine came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed<T> {
    /// It waits or has yielded.
    Suspended,
    /// It has returned this.
    Finished(T),
}

impl<T: 'static> Coroutine<T> {
    /// With a stack of 64 KiB.
    pub fn new(f: impl FnOnce() -> T + 'static) -> Result<Coroutine<T>, StackError> {
        Coroutine::with_stack_size(DEFAULT_STACK, f)
    }

    /// With a stack of at least `bytes` usable bytes.
    pub fn with_stack_size(
        bytes: usize,
        f: impl FnOnce() -> T + 'static,
    ) -> Result<Coroutine<T>, StackError> {
        let size = SizeClass::for_size(bytes)?;
        let stack = Stack::take(size)?;
        let f: Code<T> = Box::new(f);
        Ok(Coroutine {
            machine: Box::pin(Machine::new(f, size, Some(stack))),
        })
    }

    /// Goes on until it suspends or ends. A panic inside comes out here.
    ///
    /// # Panics
    /// When it has ended already.
    pub fn resume(&mut self) -> Resumed<T> {
        assert!(
            !self.is_finished(),
            "a coroutine that has ended cannot be resumed"
        );
        let mut cx = Context::from_waker(Waker::noop());
        match self.machine.as_mut().resume(&mut cx) {
            Poll::Pending => Resumed::Suspended,
            Poll::Ready(Ok(output)) => Resumed::Finished(output),
            Poll::Ready(Err(payload)) => resume_unwind(payload),
        }
    }
}

impl<T> Coroutine<T> {
    /// True once it has returned or panicked.
    pub fn is_finished(&self) -> bool {
        self.machine.is_over()
    }
}

impl<T> Drop for Coroutine<T> {
    fn drop(&mut self) {
        self.machine.frame().drop_by_hand();
        let mut cx = Context::from_waker(Waker::noop());
        // What is inside a section that nothing unwinds out of is leaked.
        while self.machine.has_begun() && !self.machine.frame().is_shielded() {
            if let Poll::Ready(Err(payload)) = self.machine.as_mut().resume(&mut cx)
                && !payload.is::<Unwound>()
                && !panicking()
            {
                resume_unwind(payload);
            }
        }
    }
}

impl<T> fmt::Debug for Coroutine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coroutine")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

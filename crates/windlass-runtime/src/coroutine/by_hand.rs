//! Coroutines that are driven by hand, without a runtime.
//!
//! A coroutine's frames may hold what belongs to the thread: a reference that `LocalKey::with` gave
//! out, for one. So they must not go on after the thread's destructors have begun, and must have
//! ended by then. A coroutine that could be put into a thread-local would go on there when that is
//! destroyed. So the type has a lifetime that nothing outside of [`drive`] has, and it cannot leave
//! the call; and `drive` returns only after all its coroutines have unwound, those that were
//! forgotten included.
//!
//! One that cannot unwind (C code is on its stack, or it swallows its cancellation) is leaked, and
//! its thread stays (`windlass_core::thread_end`). Rejected: leaking what is dropped, because
//! others may use what it has lent them; a mark in a thread-local of our own, which is destroyed
//! later than keys that are younger.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use windlass_core::context::RunsTasks;
use windlass_core::sync::thread::panicking;
use windlass_core::task::{Unwound, drop_payload};
use windlass_core::unwind::PanicPayload;

use super::body::RawCoroutine;
use super::slab::{SizeClass, StackError};
use super::stack::Stack;
use super::{DEFAULT_STACK, frame};
use windlass_sync::lock::Notify;

/// Runs `f` with a [`Driver`], which makes coroutines that are resumed by hand, on this thread.
///
/// ```
/// use windlass_runtime::coroutine::{self, CoroutineState};
///
/// coroutine::drive(|driver| {
///     let mut steps = driver.coroutine(|| {
///         for _ in 0..2 {
///             coroutine::yield_now();
///         }
///         "done"
///     })?;
///     assert_eq!(steps.resume(), CoroutineState::Suspended);
///     assert_eq!(steps.resume(), CoroutineState::Suspended);
///     assert_eq!(steps.resume(), CoroutineState::Finished("done"));
///     Ok::<(), coroutine::StackError>(())
/// })?;
/// # Ok::<(), coroutine::StackError>(())
/// ```
/// A wait inside polls its future once per resume: there is no notification when it is ready.
///
/// A coroutine cannot leave the call:
/// ```compile_fail
/// use windlass_runtime::coroutine;
///
/// let kept = coroutine::drive(|driver| driver.coroutine(|| ()));
/// ```
/// nor get into a thread-local:
/// ```compile_fail
/// use std::cell::RefCell;
/// use windlass_runtime::coroutine::{self, Coroutine};
///
/// thread_local! {
///     static KEPT: RefCell<Option<Coroutine<'static, ()>>> = const { RefCell::new(None) };
/// }
/// coroutine::drive(|driver| {
///     let coroutine = driver.coroutine(|| ()).unwrap();
///     KEPT.with(|kept| *kept.borrow_mut() = Some(coroutine));
/// });
/// ```
///
/// # Panics
/// With the panic of `f`, or of a destructor of a coroutine that was not finished.
pub fn drive<R>(f: impl for<'d> FnOnce(&Driver<'d>) -> R) -> R {
    let driver = Driver {
        unfinished: Rc::default(),
        lifetime: PhantomData,
    };
    let runs_tasks = RunsTasks::begin();
    let result = catch_unwind(AssertUnwindSafe(|| f(&driver)));
    let finished = driver.finish_all();
    drop(runs_tasks);
    match (result, finished) {
        (Ok(output), Ok(())) => output,
        (Err(payload), _) | (Ok(_), Err(payload)) => resume_unwind(payload),
    }
}

/// Makes coroutines that are resumed by hand; see [`drive`].
pub struct Driver<'d> {
    unfinished: Rc<Unfinished>,
    /// Invariant, and neither `Send` nor `Sync`.
    lifetime: PhantomData<*mut &'d ()>,
}

/// The coroutines of a driver whose handles were not dropped.
#[derive(Default)]
struct Unfinished {
    coroutines: RefCell<HashMap<u64, Rc<dyn FinishByHand>>>,
    made: Cell<u64>,
}

/// A coroutine of any type, as its driver sees it.
trait FinishByHand {
    /// Lets it unwind if it can; the error is the panic of a destructor.
    fn finish(&self) -> Result<(), PanicPayload>;
}

impl<'d> Driver<'d> {
    /// A coroutine with a stack of 64 KiB. It has not begun.
    pub fn coroutine<T: 'static>(
        &self,
        f: impl FnOnce() -> T + 'static,
    ) -> Result<Coroutine<'d, T>, StackError> {
        self.with_stack_size(DEFAULT_STACK, f)
    }

    /// A coroutine with a stack of at least `bytes` usable bytes. It has not begun.
    pub fn with_stack_size<T: 'static>(
        &self,
        bytes: usize,
        f: impl FnOnce() -> T + 'static,
    ) -> Result<Coroutine<'d, T>, StackError> {
        let size = SizeClass::for_size(bytes)?;
        let stack = Stack::take(size)?;
        let f: Code<T> = Box::new(f);
        let raw = Rc::new(Driven {
            raw: RefCell::new(Box::pin(RawCoroutine::new(f, size, Some(stack)))),
        });
        let number = self.unfinished.made.get() + 1;
        self.unfinished.made.set(number);
        self.unfinished
            .coroutines
            .borrow_mut()
            .insert(number, raw.clone());
        Ok(Coroutine {
            driven: raw,
            driver: self.unfinished.clone(),
            number,
            lifetime: PhantomData,
        })
    }

    /// Lets the coroutines unwind whose handles were forgotten, or dropped while the thread
    /// unwound. Destructors may make more of them meanwhile.
    fn finish_all(&self) -> Result<(), PanicPayload> {
        let mut result = Ok(());
        loop {
            let left = std::mem::take(&mut *self.unfinished.coroutines.borrow_mut());
            if left.is_empty() {
                return result;
            }
            for coroutine in left.into_values() {
                // One that has not begun drops its closure with the last reference.
                let finished = coroutine.finish();
                let dropped = catch_unwind(AssertUnwindSafe(|| drop(coroutine)));
                for ended in [finished, dropped] {
                    match (ended, &result) {
                        (Ok(()), _) => {}
                        (first, Ok(())) => result = first,
                        // The first is reported. The destructor of another payload may panic, too.
                        (Err(other), Err(_)) => drop_payload(other),
                    }
                }
            }
        }
    }
}

impl fmt::Debug for Driver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

/// A coroutine that goes on when [`resume`](Coroutine::resume) is called, on this thread. See
/// [`drive`].
///
/// Dropping one that is suspended lets it unwind, as [`finish`](Coroutine::finish) does. While the
/// thread unwinds it cannot: it does at the end of [`drive`].
#[must_use = "a coroutine does nothing until it is resumed"]
pub struct Coroutine<'d, T: 'static> {
    driven: Rc<Driven<T>>,
    driver: Rc<Unfinished>,
    number: u64,
    lifetime: PhantomData<*mut &'d ()>,
}

/// Borrowed while it is resumed, and no other code has it then: the handle is borrowed, too, and
/// the driver looks at it only after the last resume.
struct Driven<T> {
    raw: RefCell<PinnedCoroutine<T>>,
}

type Code<T> = Box<dyn FnOnce() -> T>;
type PinnedCoroutine<T> = Pin<Box<RawCoroutine<Code<T>, T>>>;

/// The state of a coroutine after a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoroutineState<T> {
    /// The coroutine waits or has yielded.
    Suspended,
    /// The coroutine has returned this.
    Finished(T),
}

/// The way in which a coroutine ended when it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a coroutine that is leaked keeps its stack"]
pub enum Finish<T> {
    /// The coroutine had not begun: its closure was dropped.
    NotBegun,
    /// The coroutine has unwound, or had ended before.
    Ended,
    /// The coroutine has returned this instead.
    Returned(T),
    /// The thread unwinds at the moment, or is inside of another runtime than the one in which the
    /// coroutine began: it unwinds at the end of [`drive`].
    Later,
    /// The coroutine is inside of foreign code, which nothing unwinds out of, or goes on waiting
    /// although it was asked to end. It is leaked with its stack, and its thread stays.
    Leaked,
}

impl<T: 'static> Driven<T> {
    fn is_finished(&self) -> bool {
        self.raw.borrow().is_over()
    }

    /// It cannot be finished here and now.
    fn is_put_off(&self) -> bool {
        let raw = self.raw.borrow();
        let is_elsewhere = raw.has_begun() && !raw.frame().is_on_its_pool();
        !raw.is_over() && (panicking() || is_elsewhere)
    }

    fn finish(&self) -> Result<Finish<T>, PanicPayload> {
        let mut raw = self.raw.borrow_mut();
        if raw.is_over() {
            return Ok(Finish::Ended);
        }
        if !raw.has_begun() {
            return Ok(Finish::NotBegun);
        }
        if panicking() || !raw.frame().is_on_its_pool() {
            // What runs on its stack would believe that it unwinds itself, and neither wait nor
            // end. Or this is inside of a runtime in which it did not begin.
            return Ok(Finish::Later);
        }
        let woken = Arc::new(EndNotifier(Notify::new()));
        raw.frame().finish_by_hand(Waker::from(woken.clone()));
        while !raw.frame().is_in_foreign_code() && !raw.frame().has_given_up() {
            match raw.as_mut().resume() {
                // In a section it waits for others that borrow from it, and cannot unwind before
                // they end.
                Poll::Pending if raw.frame().is_shielded() => {
                    if !frame::wait_shielded(woken.0.notified()) {
                        break;
                    }
                }
                Poll::Pending => {}
                Poll::Ready(Ok(output)) => return Ok(Finish::Returned(output)),
                Poll::Ready(Err(payload)) if payload.is::<Unwound>() => return Ok(Finish::Ended),
                Poll::Ready(Err(payload)) => return Err(payload),
            }
        }
        Ok(Finish::Leaked)
    }
}

/// What the waits of a coroutine that was asked to end wake.
struct EndNotifier(Notify);

impl Wake for EndNotifier {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.notify_one();
    }
}

impl<T: 'static> FinishByHand for Driven<T> {
    fn finish(&self) -> Result<(), PanicPayload> {
        // An output that the coroutine returns is dropped here, and its destructor may panic.
        catch_unwind(AssertUnwindSafe(|| Driven::finish(self).map(drop))).flatten()
    }
}

impl<T: 'static> Coroutine<'_, T> {
    /// Goes on until it suspends or ends. A panic inside comes out here.
    ///
    /// # Panics
    /// When it has ended already, or is resumed inside another runtime than it began in.
    #[track_caller]
    pub fn resume(&mut self) -> CoroutineState<T> {
        assert!(
            !self.is_finished(),
            "a coroutine that has ended cannot be resumed"
        );
        let resumed = self.driven.raw.borrow_mut().as_mut().resume();
        match resumed {
            Poll::Pending => CoroutineState::Suspended,
            Poll::Ready(Ok(output)) => CoroutineState::Finished(output),
            Poll::Ready(Err(payload)) => resume_unwind(payload),
        }
    }

    /// Lets it unwind, as a cancellation does: the wait it is in raises, and so does each later
    /// one. One that catches that and waits again, a thousand times over, is leaked.
    ///
    /// # Panics
    /// With a panic of its destructors.
    pub fn finish(self) -> Finish<T> {
        self.driven
            .finish()
            .unwrap_or_else(|payload| resume_unwind(payload))
    }

    /// True once it has returned or panicked.
    pub fn is_finished(&self) -> bool {
        self.driven.is_finished()
    }
}

impl<T: 'static> Drop for Coroutine<'_, T> {
    fn drop(&mut self) {
        if self.driven.is_put_off() {
            // Its driver finishes it.
            return;
        }
        let own = self.driver.coroutines.borrow_mut().remove(&self.number);
        if own.is_some()
            && let Err(payload) = FinishByHand::finish(&*self.driven)
        {
            resume_unwind(payload);
        }
    }
}

impl<T: 'static> fmt::Debug for Coroutine<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coroutine")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

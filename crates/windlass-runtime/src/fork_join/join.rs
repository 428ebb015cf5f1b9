//! Two closures at once.
//!
//! The second half is a job in the frame of the join. Rules, which the `unsafe` blocks cite:
//!
//! 1. **One runs it.** The thread that takes the job out of the deque runs `b`: the owner, who
//!    finds it at the bottom, or a thief. The other never touches the closure.
//! 2. **The frame waits.** `forked` returns, also by a panic, only after the job was taken back or
//!    its latch is set. So what `b` borrows, and the frame itself, are there while the job runs. A
//!    panic anywhere else than in the closures ends the process (`NoUnwind`).
//! 3. **The rule of the frame** (`windlass_core::sched::latch`): the thief writes the result before
//!    it sets the latch, and touches nothing of the frame afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use windlass_core::queue::{JobRef, Taker};
use windlass_core::sched::fork::{self, Here, Latch};
use windlass_core::sync::UnsafeCell;
use windlass_core::unwind::NoUnwind;

use crate::fork_join::{forget_payload, injected_call};
use windlass_core::unwind::PanicPayload;

/// Runs two closures, in parallel if another worker has time, and returns both results.
///
/// They may borrow from the caller. It costs a few nanoseconds if no worker takes the second one,
/// so recursive code needs no cutoff of its own to be correct, and rarely one to be fast.
///
/// ```
/// use windlass_runtime::fork_join::join;
///
/// let mut numbers = [3, 1, 2, 9, 7, 8];
/// let (left, right) = numbers.split_at_mut(3);
/// let (smallest, largest) = join(
///     || { left.sort(); left[0] },
///     || { right.sort(); right[2] },
/// );
/// assert_eq!((smallest, largest), (1, 9));
/// assert_eq!(numbers, [1, 2, 3, 7, 8, 9]);
/// ```
/// Do not hold a `std` lock across it: see the [module](crate::fork_join).
///
/// # Panics
/// With the panic of `a`, or else that of `b`; both have ended by then.
///
/// What cannot be sent to another thread cannot be used in it:
/// ```compile_fail,E0277
/// use std::rc::Rc;
/// use windlass_runtime::fork_join::join;
///
/// let shared = Rc::new(1);
/// join(|| println!("{shared}"), || println!("{shared}"));
/// ```
/// Both halves may not change the same thing:
/// ```compile_fail,E0499
/// use windlass_runtime::fork_join::join;
///
/// let mut sum = 0;
/// join(|| sum += 1, || sum += 2);
/// ```
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    fork::here(|here| match here {
        Some(here) if here.has_enough() => in_order(a, b),
        Some(here) => forked(here, a, b),
        None => outside(a, b),
    })
}

/// As [`join`], for halves that are known to be long: always offers the second one.
pub(super) fn join_long<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    fork::here(|here| match here {
        Some(here) => forked(here, a, b),
        None => outside(a, b),
    })
}

/// One after the other. The second runs also if the first has panicked, as it would have elsewhere.
#[inline(always)]
fn in_order<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB,
{
    match catch_unwind(AssertUnwindSafe(a)) {
        Ok(a) => (a, b()),
        Err(payload) => after_panic(payload, b),
    }
}

#[cold]
fn after_panic<B: FnOnce() -> RB, RB>(payload: PanicPayload, b: B) -> ! {
    rethrow(payload, catch_unwind(AssertUnwindSafe(b)))
}

/// Goes on with the panic of `a`; what became of `b` is dropped.
#[cold]
fn rethrow<RB>(payload: PanicPayload, b: thread::Result<RB>) -> ! {
    match b {
        Ok(value) => {
            windlass_core::task::contain(|| drop(value));
        }
        Err(second) => forget_payload(second),
    }
    resume_unwind(payload)
}

#[cold]
fn outside<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    match injected_call::destination() {
        Some(runtime) => injected_call::on_pool(&runtime, move || join(a, b)),
        None => in_order(a, b),
    }
}

/// The second half, in the frame of its join.
struct Half<B, RB> {
    latch: Latch,
    /// Guarded by rule 1.
    closure: UnsafeCell<Option<B>>,
    /// Guarded by rule 3.
    result: UnsafeCell<Option<thread::Result<RB>>>,
}

#[inline(never)]
fn forked<A, B, RA, RB>(here: Here<'_>, a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let half = Half {
        latch: here.latch(),
        closure: UnsafeCell::new(Some(b)),
        result: UnsafeCell::new(None),
    };
    let job = JobRef::new((&raw const half).cast(), run_stolen::<B, RB>);
    let guard = NoUnwind::arm("fork_join::join");
    // SAFETY: rule 2; `B` and `RB` are `Send`.
    unsafe { here.fork(job) };
    let a = catch_unwind(AssertUnwindSafe(a));
    // Not in one go with the wait: `b` may recurse, and should not find more on the stack than `a`
    // did.
    let back = fork::here(|here| is_back(here.expect("it runs on workers only"), &half.latch, job));
    guard.disarm();
    if !back {
        // SAFETY: rule 3: the latch is set.
        let b = unsafe { half.result.with_mut(|result| (*result).take()) };
        return settle(a, b.expect("a set latch has a result (rule 3)"));
    }
    // SAFETY: rule 1: we have taken the job back.
    let b = unsafe { half.closure.with_mut(|closure| (*closure).take()) };
    let b = b.expect("nobody else had the job (rule 1)");
    match a {
        Ok(a) => (a, b()),
        Err(payload) => after_panic(payload, b),
    }
}

/// Takes the second half back, or waits for its end. True: it is back.
fn is_back(here: Here<'_>, latch: &Latch, job: JobRef) -> bool {
    loop {
        match here.take() {
            Some(taken) if std::ptr::eq(taken.data(), job.data()) => return true,
            // `a` has spawned it into a scope around us.
            // SAFETY: we have taken it out of our deque.
            Some(newer) => unsafe { newer.run(Taker::Owner) },
            None => {
                here.wait(latch, || {
                    here.steal_from(latch.thief()?, || !latch.is_set())
                });
                return false;
            }
        }
    }
}

fn settle<RA, RB>(a: thread::Result<RA>, b: thread::Result<RB>) -> (RA, RB) {
    match (a, b) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(payload), b) => rethrow(payload, b),
        (Ok(_), Err(payload)) => resume_unwind(payload),
    }
}

/// # Safety
/// `half` is a [`Half`] of these types in the frame of a `forked`, and the caller, a worker of that
/// pool, has taken the job.
unsafe fn run_stolen<B, RB>(half: *const (), taken: Taker)
where
    B: FnOnce() -> RB,
{
    debug_assert_eq!(taken, Taker::Thief, "its owner knows it");
    let half = half.cast::<Half<B, RB>>();
    fork::here(|here| {
        let here = here.expect("jobs run on workers");
        let mark = here.mark();
        // SAFETY: rule 2: the frame is there until the latch is set.
        let frame = unsafe { &*half };
        frame.latch.stolen_by(here.index());
        // SAFETY: rule 1: we have taken the job.
        let b = unsafe { frame.closure.with_mut(|closure| (*closure).take()) };
        let b = b.expect("nobody else had the job (rule 1)");
        let guard = NoUnwind::arm("a stolen half of fork_join::join");
        let result = catch_unwind(AssertUnwindSafe(b));
        // SAFETY: rule 3: no thread reads it before the latch is set.
        unsafe { frame.result.with_mut(|place| *place = Some(result)) };
        here.run_above(mark);
        // SAFETY: rule 3: this is the last we do with the frame.
        unsafe { here.set(&raw const (*half).latch) };
        guard.disarm();
    });
}

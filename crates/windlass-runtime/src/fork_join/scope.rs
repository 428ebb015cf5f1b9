//! As many closures as one likes, all of which end before the scope does.
//!
//! Rules, which the `unsafe` blocks cite:
//!
//! 1. **Counted.** `pending` counts the closures that have not ended, and one more for the frame of
//!    `scope` until it waits. The scope and what the closures borrow are there until it is zero.
//! 2. **Who brings the count to zero sets the latch**, and the frame believes only the latch. So
//!    all other threads have touched the scope for the last time when they count down, and that one
//!    when it sets the latch (the rule of the frame, `windlass_core::sched::latch`). A panic
//!    anywhere else than in the closures ends the process (`NoUnwind`).
//! 3. **Boxed.** A closure waits in a box of its own; the thread that takes its job out of a deque
//!    owns the box.

use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use windlass_core::queue::{JobRef, Taker};
use windlass_core::sched::fork::{self, Here, Latch};
use windlass_core::sync::atomic::{AtomicUsize, Ordering};
use windlass_core::unwind::NoUnwind;

use crate::fork_join::first_panic::FirstPanic;
use crate::fork_join::injected_call;
use crate::fork_join::thieves::Thieves;

/// Where closures are spawned that may borrow what is older than the scope. See [`scope`].
pub struct Scope<'scope> {
    /// Which pool; 0: none.
    pool: usize,
    pending: AtomicUsize,
    thieves: Thieves,
    latch: Latch,
    panic: FirstPanic,
    /// Invariant: a scope must not pass for one of a longer or shorter life.
    lifetime: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

/// Runs `f`, which may spawn closures that borrow; returns when all of them have ended.
///
/// ```
/// use windlass_runtime::fork_join::scope;
///
/// let mut counts = [0; 3];
/// let text = String::from("a bcd ef");
/// scope(|s| {
///     for (count, word) in counts.iter_mut().zip(text.split(' ')) {
///         s.spawn(move |_| *count = word.len());
///     }
/// });
/// assert_eq!(counts, [1, 3, 2]);
/// ```
/// A closure gets the scope, too, and can spawn more into it. In which order they run is not said.
///
/// # Panics
/// With the first panic of `f` or of a closure; all have ended by then.
///
/// What a closure borrows must be older than the scope:
/// ```compile_fail,E0373
/// use windlass_runtime::fork_join::scope;
///
/// scope(|s| {
///     let inside = vec![1, 2, 3];
///     s.spawn(|_| println!("{inside:?}"));
/// });
/// ```
/// and nothing that borrows from a closure's own variables gets out of it:
/// ```compile_fail,E0597
/// use windlass_runtime::fork_join::scope;
///
/// let mut longest: &str = "";
/// scope(|s| {
///     s.spawn(|_| {
///         let word = String::from("inside");
///         longest = &word;
///     });
/// });
/// println!("{longest}");
/// ```
pub fn scope<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R + Send,
    R: Send,
{
    fork::here(|here| match here {
        Some(here) => on_worker(here, f),
        None => match injected_call::destination() {
            Some(runtime) => injected_call::on_pool(&runtime, move || scope(f)),
            None => in_order(f),
        },
    })
}

fn on_worker<'scope, F, R>(here: Here<'_>, f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R,
{
    let scope = Scope::new(here.pool_id(), here.latch());
    let mark = here.mark();
    let guard = NoUnwind::arm("fork_join::scope");
    let result = scope.run(f);
    // Perhaps on another worker by now, if this is a migrating coroutine.
    fork::here(|here| {
        let here = here.expect("it runs on workers only");
        here.run_above(mark);
        // AcqRel: pairs with the count in `end`: their results are seen here.
        if scope.pending.fetch_sub(1, Ordering::AcqRel) > 1 {
            here.wait(&scope.latch, || scope.thieves.help(here));
        }
    });
    guard.disarm();
    scope.settle(result)
}

/// On a thread that is no worker and stays where it is.
fn in_order<'scope, F, R>(f: F) -> R
where
    F: FnOnce(&Scope<'scope>) -> R,
{
    let scope = Scope::new(0, Latch::new(0));
    let result = scope.run(f);
    scope.settle(result)
}

impl<'scope> Scope<'scope> {
    fn new(pool: usize, latch: Latch) -> Scope<'scope> {
        Scope {
            pool,
            pending: AtomicUsize::new(1),
            thieves: Thieves::default(),
            latch,
            panic: FirstPanic::default(),
            lifetime: PhantomData,
        }
    }

    /// Runs `f` before the scope ends, perhaps on another worker. On a thread that is no worker of
    /// the scope's runtime it runs at once.
    ///
    /// ```
    /// use windlass_runtime::fork_join::{Scope, scope};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// fn walk<'scope>(s: &Scope<'scope>, depth: u32, leaves: &'scope AtomicU32) {
    ///     if depth == 0 {
    ///         leaves.fetch_add(1, Ordering::Relaxed);
    ///         return;
    ///     }
    ///     for _ in 0..2 {
    ///         s.spawn(move |s| walk(s, depth - 1, leaves));
    ///     }
    /// }
    ///
    /// let leaves = AtomicU32::new(0);
    /// scope(|s| walk(s, 5, &leaves));
    /// assert_eq!(leaves.into_inner(), 32);
    /// ```
    pub fn spawn<F>(&self, f: F)
    where
        F: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        fork::here(|here| match here {
            Some(here) if here.pool_id() == self.pool => self.fork(here, f),
            _ => {
                self.run(f);
            }
        });
    }

    fn fork<F>(&self, here: Here<'_>, f: F)
    where
        F: FnOnce(&Scope<'scope>) + Send + 'scope,
    {
        // Relaxed: the spawning thread is counted itself, so the count is not zero.
        self.pending.fetch_add(1, Ordering::Relaxed);
        let job = Box::new(SpawnedClosure {
            scope: std::ptr::from_ref(self),
            closure: f,
        });
        let job = JobRef::new(Box::into_raw(job).cast_const().cast(), run_spawned::<F>);
        // SAFETY: rules 1 and 3: the scope waits for it, `F` is `Send`, and what it borrows
        // outlives the scope. The frame below us (a join, a stolen job, the scope itself) runs what
        // is above its mark before it returns.
        unsafe { here.fork(job) };
    }

    /// Runs a closure and keeps its panic; none: it panicked.
    fn run<R>(&self, f: impl FnOnce(&Scope<'scope>) -> R) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(|| f(self))) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.panic.keep(payload);
                None
            }
        }
    }

    /// All have ended.
    fn settle<R>(self, result: Option<R>) -> R {
        let mut result = result;
        self.panic.resume(|| drop(result.take()));
        result.expect("a result is missing only after a panic, which is kept")
    }
}

struct SpawnedClosure<'scope, F> {
    scope: *const Scope<'scope>,
    closure: F,
}

/// # Safety `spawned` is a box of a [`SpawnedClosure`] of this type, and the caller, a worker of
/// that pool, has taken the job.
unsafe fn run_spawned<'scope, F>(spawned: *const (), taken: Taker)
where
    F: FnOnce(&Scope<'scope>),
{
    // SAFETY: rule 3.
    let spawned = unsafe { Box::from_raw(spawned.cast_mut().cast::<SpawnedClosure<'scope, F>>()) };
    let SpawnedClosure { scope, closure } = *spawned;
    let guard = NoUnwind::arm("a closure of fork_join::scope");
    fork::here(|here| {
        let here = here.expect("jobs run on workers");
        // SAFETY: rule 1: we are counted.
        let frame = unsafe { &*scope };
        if taken == Taker::Owner {
            frame.run(closure);
        } else {
            run_stolen(frame, here, closure);
        }
        // AcqRel: pairs with itself: who sees zero has seen what all others did.
        if frame.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: rule 2: we brought it to zero, and touch it no more.
            unsafe { here.set(&raw const (*scope).latch) };
        }
    });
    guard.disarm();
}

/// Runs a closure that was taken from another worker, and what it leaves in our deque.
fn run_stolen<'scope, F>(scope: &Scope<'scope>, here: Here<'_>, closure: F)
where
    F: FnOnce(&Scope<'scope>),
{
    let mark = here.mark();
    let entered = scope.thieves.enter(here);
    scope.run(closure);
    here.run_above(mark);
    scope.thieves.leave(entered);
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("pending", &self.pending.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

//! The simulator's clock and dice, which stand in for the real ones on its threads.
//!
//! A thread enters a world for the duration of a closure; `clock::now` and `random` ask it then.

use std::cell::Cell;

use super::Mutex;
use super::atomic::{AtomicU64, AtomicUsize, Ordering};
use super::rng::{XorShift, entropy};
use crate::context::{self, Barrier, Exchange};

/// A simulated world: its time, and its only source of randomness.
#[derive(Debug)]
pub struct World {
    now: AtomicU64,
    dice: Mutex<XorShift>,
    /// Where the code runs that runs now; 0 is everywhere that has no name.
    node: AtomicUsize,
    /// Panics of tasks that no join handle has given out.
    unobserved: Mutex<Vec<UnobservedPanic>>,
    /// Panics are expected while this is not zero.
    panics_expected: AtomicUsize,
}

/// A task that panicked, and whose handle was not awaited since.
#[derive(Debug)]
struct UnobservedPanic {
    /// The address of the task's block, and the number of the task: blocks are used again, and
    /// local sets number their tasks by themselves.
    task: (usize, u64),
    what: String,
}

impl World {
    /// A world at its first moment, whose randomness depends on `seed` alone.
    pub fn new(seed: u64) -> World {
        World {
            now: AtomicU64::new(0),
            dice: Mutex::new(XorShift::new(seed)),
            node: AtomicUsize::new(0),
            unobserved: Mutex::new(Vec::new()),
            panics_expected: AtomicUsize::new(0),
        }
    }

    /// A task has panicked: its block and its number.
    pub(crate) fn note_panic(&self, task: (usize, u64), what: impl FnOnce() -> String) {
        // Relaxed: the threads of a simulation take turns.
        if self.panics_expected.load(Ordering::Relaxed) == 0 {
            let what = what();
            self.unobserved.lock().push(UnobservedPanic { task, what });
        }
    }

    /// Marks the panic of this task as seen.
    pub(crate) fn panic_observed(&self, task: (usize, u64)) {
        let mut unobserved = self.unobserved.lock();
        if let Some(index) = unobserved.iter().rposition(|panic| panic.task == task) {
            unobserved.remove(index);
        }
    }

    /// Returns a sentence for each panic that was not seen.
    pub fn unobserved_panics(&self) -> Vec<String> {
        let unobserved = self.unobserved.lock();
        unobserved.iter().map(|panic| panic.what.clone()).collect()
    }

    /// From now on panics are expected, until `end_expecting_panics` has been called as often.
    pub fn begin_expecting_panics(&self) {
        self.panics_expected.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends what `begin_expecting_panics` began.
    pub fn end_expecting_panics(&self) {
        self.panics_expected.fetch_sub(1, Ordering::Relaxed);
    }

    /// Nanoseconds since the first moment.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Time goes on to `now`; it never goes back.
    pub fn advance_to(&self, now: u64) {
        debug_assert!(now >= self.now(), "time went backwards");
        self.now.store(now, Ordering::Relaxed);
    }

    /// The next number of the dice.
    pub fn random(&self) -> u64 {
        self.dice.lock().next_u64()
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&self, bound: usize) -> usize {
        self.dice.lock().below(bound)
    }

    /// Returns the node on which the current code runs: a number that the simulator gives a
    /// meaning. A task runs where it was spawned.
    pub fn node(&self) -> usize {
        self.node.load(Ordering::Relaxed)
    }

    /// Runs `f` on another node. While a coroutine is suspended inside of `f`, others are where
    /// they were.
    pub fn at_node<R>(&self, node: usize, f: impl FnOnce() -> R) -> R {
        struct Elsewhere<'a>(&'a World, Cell<usize>);
        impl Exchange for Elsewhere<'_> {
            fn exchange(&self) {
                // Relaxed: the threads of a simulation take turns.
                let other = self.0.node.swap(self.1.get(), Ordering::Relaxed);
                self.1.set(other);
            }
        }
        context::installed(&Elsewhere(self, Cell::new(node)), f)
    }

    /// Makes this the world of the current thread while `f` runs. No coroutine further down is
    /// suspended inside of `f`: the world would stay behind on its thread.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Leave(*const World);
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.with(|current| current.set(self.0));
            }
        }
        let _barrier = Barrier::raise();
        let _leave = Leave(CURRENT.with(|current| current.replace(self)));
        f()
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    static CURRENT: Cell<*const World> = const { Cell::new(std::ptr::null()) };
    static DICE: Cell<Option<(u64, u64)>> = const { Cell::new(None) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
super::thread_local! {
    static CURRENT: Cell<*const World> = Cell::new(std::ptr::null());
    static DICE: Cell<Option<(u64, u64)>> = Cell::new(None);
}

/// Calls `f` with the world this thread is in, if it is a simulated one.
#[inline]
pub fn with_world<R>(f: impl FnOnce(Option<&World>) -> R) -> R {
    let world = CURRENT.with(Cell::get);
    // SAFETY: `enter` borrows the world for as long as the pointer is set, on this thread only.
    f(unsafe { world.as_ref() })
}

/// A random number that needs no secrecy: the world's in a simulation, this thread's otherwise.
pub fn random() -> u64 {
    with_world(|world| match world {
        Some(world) => world.random(),
        None => DICE.with(|dice| {
            let (a, b) = dice.get().unwrap_or_else(|| (entropy(), entropy() | 1));
            let mut own = XorShift::from_parts(a, b);
            let number = own.next_u64();
            dice.set(Some(own.into_parts()));
            number
        }),
    })
}

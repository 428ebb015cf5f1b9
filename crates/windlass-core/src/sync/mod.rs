//! The one source of atomics, locks, threads, clocks and randomness.
//!
//! Everything above uses this module and nothing else (invariant 2). In a normal build it is the
//! standard library plus a futex; with `--cfg windlass_loom` it is loom, with
//! `--cfg windlass_shuttle` it is shuttle, and the same engine code runs under the checker.

pub mod clock;
mod coarse_clock;
#[cfg(any(windlass_loom, windlass_shuttle))]
mod modelled_locks;
mod parker;
mod rng;
mod world;

#[cfg(windlass_loom)]
#[path = "loom.rs"]
mod imp;
#[cfg(windlass_shuttle)]
#[path = "shuttle.rs"]
mod imp;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
#[path = "native.rs"]
mod imp;

pub use coarse_clock::CoarseClock;
pub use imp::{
    Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, UnsafeCell, atomic,
    hint, thread,
};
pub use parker::{Parker, Wakeup};
pub use rng::{XorShift, entropy};
pub use world::{World, random, with_world};

#[cfg(any(windlass_loom, windlass_shuttle))]
pub use imp::thread_local;

/// A thread that had not ended when the time to wait for it was over.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UnfinishedThread {
    /// The name of the thread.
    pub name: String,
    /// What the thread still does.
    pub runs: UnfinishedPart,
}

/// What keeps a thread from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnfinishedPart {
    /// The closure that the thread was started with.
    Closure,
    /// The destructor of one of its thread-locals.
    ThreadLocals,
}

impl std::fmt::Display for UnfinishedThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let runs = match self.runs {
            UnfinishedPart::Closure => "the code that it was started with",
            UnfinishedPart::ThreadLocals => "the destructor of a thread-local",
        };
        write!(f, "thread {} did not return from {runs}", self.name)
    }
}

/// Keeps a value on cache lines of its own, so that writers of the neighbours do not slow it down.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

const _: () = assert!(align_of::<Padded<u8>>() == crate::tuning::CACHE_LINE);

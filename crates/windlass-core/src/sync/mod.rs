//! The one source of atomics, locks, threads, clocks and randomness.
//!
//! Everything above uses this module and nothing else (invariant 2). In a normal build it is the
//! standard library plus a futex; with `--cfg windlass_loom` it is loom, with
//! `--cfg windlass_shuttle` it is shuttle, and the same engine code runs under the checker.

pub mod clock;
mod near;
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

pub use imp::{
    Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, UnsafeCell, atomic,
    hint, thread,
};
pub use near::Near;
pub use parker::{Parker, Wakeup};
pub use rng::{XorShift, entropy};
pub use world::{World, random, with_world};

#[cfg(any(windlass_loom, windlass_shuttle))]
pub(crate) use imp::thread_local;

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

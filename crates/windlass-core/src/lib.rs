//! The engine of Windlass: one work-stealing scheduler under five front ends.
//!
//! | word | meaning |
//! |---|---|
//! | task | the one schedulable thing: header, state word, vtable, body, join cell |
//! | worker | an OS thread that runs the tasks of one pool |
//! | pool | workers with their queues and idle set |
//! | class | runtime priority: high, normal, low, background |
//! | driver | where a parked worker sleeps |
//!
//! This crate knows no future runtime, no I/O and no time beyond a monotonic clock. Applications
//! use the `windlass` crate; this one is for front ends.
//!
//! ```
//! use windlass_core::sched::pool::{Config, Hooks, Pool};
//! use windlass_core::task::{FutureBody, Options, SpawnRequest};
//!
//! let pool = Pool::start(Config { workers: 2, ..Config::default() }, Hooks::default(), None)?;
//! let answer = pool.spawn(SpawnRequest::new(FutureBody(async { 6 * 7 }), Options::here()));
//! assert_eq!(windlass_core::block_on(answer).unwrap(), 42);
//! assert!(pool.shutdown(None).stuck.is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod context;
pub mod deep;
pub mod executor;
pub mod hash;
pub mod observe;
pub mod queue;
pub mod sched;
pub mod sync;
pub mod task;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub mod thread_end;
pub mod tuning;
pub mod unwind;

pub use executor::block_in_place::block_in_place;
pub use executor::block_on::{
    Signal, Suspend, Waiting, begin_wait, block_anywhere, block_on, block_thread, is_waiting,
    set_signal, set_suspend,
};

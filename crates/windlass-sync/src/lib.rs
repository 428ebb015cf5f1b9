//! Channels, locks, cancellation, limits and timers: everything that waits and needs no kernel.
//!
//! | module | what it has |
//! |---|---|
//! | [`channel`] | channels between tasks and plain threads |
//! | [`lock`] | locks and meeting points |
//! | [`cancel`], [`limit`] | cancellation tokens; how long an operation may wait |
//! | [`time`] | instants, timers, sleeps, timeouts, deadlines |
//! | [`park`] | the protocol by which a guest parks and is woken |
//! | [`readiness`] | the readiness of a resource, and the tasks that wait for it |
//!
//! Applications use the `windlass` crate, which re-exports all of this. The model checkers build
//! the whole crate.

pub mod cancel;
pub mod channel;
pub mod limit;
pub mod lock;
pub mod park;
pub mod readiness;
pub mod time;
pub(crate) mod wait_list;
mod waker_id;

pub use cancel::{CancellationToken, Cancelled, DropGuard};
pub use limit::{Cut, Limit};

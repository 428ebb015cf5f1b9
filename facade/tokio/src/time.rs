//! Sleeping, deadlines, intervals, and the clock of tests.

use std::future::IntoFuture;

pub use std::time::Duration;

pub use windlass_runtime::time::{
    Instant, Interval, MissedTickBehavior, Sleep, Timeout, advance, interval, interval_at, pause,
    resume, sleep, sleep_until,
};

/// The errors of this module.
pub mod error {
    pub use windlass_runtime::time::error::Elapsed;
}

/// Runs `future` for at most `time`; a future that is too slow is dropped.
pub fn timeout<F: IntoFuture>(time: Duration, future: F) -> Timeout<F::IntoFuture> {
    windlass_runtime::time::timeout(time, future.into_future())
}

/// Runs `future` until `deadline` at most.
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    windlass_runtime::time::timeout_at(deadline, future.into_future())
}

//! Time: sleeping, deadlines, intervals.
//!
//! ```
//! use std::time::Duration;
//! use windlass_runtime::{Runtime, time};
//!
//! let runtime = Runtime::new()?;
//! runtime.block_on(async {
//!     let began = time::Instant::now();
//!     time::sleep(Duration::from_millis(5)).await;
//!     assert!(began.elapsed() >= Duration::from_millis(5));
//!
//!     let never = std::future::pending::<()>();
//!     assert!(time::timeout(Duration::from_millis(5), never).await.is_err());
//! });
//! # Ok::<(), windlass_runtime::BuildError>(())
//! ```
//! A timer never fires early. How late it is depends on the machine (tens of microseconds on an
//! idle one), not on a grid. In a simulation time is virtual and every timer is exact.

mod interval;
#[cfg(feature = "test-util")]
mod paused;
pub mod precise;

pub use self::interval::{Interval, MissedTickBehavior, interval, interval_at};
#[cfg(feature = "test-util")]
pub use self::paused::{advance, pause, resume};
pub use std::time::Duration;
pub use windlass_sync::time::{
    Deadline, Instant, Sleep, Timeout, current_deadline, deadline, sleep, sleep_until, timeout,
    timeout_at,
};

/// What can go wrong with time.
pub mod error {
    pub use windlass_sync::time::Elapsed;
}

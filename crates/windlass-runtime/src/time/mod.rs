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

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
mod deadline;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
mod instant;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
mod interval;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub mod precise;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
mod sleep;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
mod timeout;

#[cfg(windlass_loom)]
pub mod model;
pub(crate) mod timers;
pub(crate) mod wheel;

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub(crate) use self::deadline::inherit_deadline;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub use self::{
    deadline::{Deadline, current_deadline, deadline},
    instant::Instant,
    interval::{Interval, MissedTicks, interval, interval_at},
    sleep::{Sleep, sleep, sleep_until},
    timeout::{Elapsed, Timeout, timeout, timeout_at},
};

//! The part of time that waits need: instants, timers, sleeps, timeouts, deadlines.
//!
//! ```
//! use std::time::Duration;
//! use windlass_runtime::Runtime;
//! use windlass_sync::time;
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

mod deadline;
mod instant;
#[cfg(windlass_loom)]
pub mod model;
mod sleep;
mod thread_shard;
mod timeout;
mod timers;
mod wheel;

pub use self::deadline::{Deadline, Inherit, current_deadline, deadline, inherit_deadline};
pub use self::instant::Instant;
pub use self::sleep::{Sleep, sleep, sleep_until};
pub use self::thread_shard::{Fallback, set_fallback, set_shard};
pub use self::timeout::{Elapsed, Timeout, timeout, timeout_at};
pub use self::timers::{Shard, Timers};
pub use self::wheel::TICK_NS;

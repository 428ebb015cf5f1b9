//! The scheduler: a pool of workers, which workers sleep and which are notified, and how it all
//! ends.

mod arrivals;
mod config;
mod crew;
pub mod driver;
pub mod fork;
mod idle;
mod latch;
pub mod pool;
mod remote;
pub mod simulate;
pub(crate) mod stop;
mod watchdog;
pub(crate) mod worker;

pub use arrivals::Arrivals;
pub use crew::{Replacement, ResizeError, while_blocked};
pub use idle::{Counts, Idle};

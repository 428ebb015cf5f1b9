//! Seeing inside: counters, the flight recorder, the pulse that the watchdog feels.
//!
//! All of it is plain data at the boundary; nothing here blocks a worker.

mod counters;
mod pulse;
mod recorder;
mod snapshot;

pub(crate) use counters::Counters;
pub(crate) use pulse::Pulse;
pub(crate) use recorder::Recorder;
pub use recorder::{Event, EventKind, Recording};
pub use snapshot::{LeakedTask, PoolSnapshot, Stall, StuckWorker, WorkerSnapshot, WorkerState};

//! Running a graph.

mod apart;
mod begin;
mod cadence;
mod channel;
mod commit;
mod control;
mod counts;
mod facts;
mod graphs;
mod health;
mod invoke;
mod lane;
mod lifecycle;
mod loops;
mod machine;
mod metrics;
mod options;
mod outside;
mod pool;
mod prepared;
mod result;
mod store;
mod tap;
mod trace;
mod trigger;

pub use control::{ConfigTransaction, Control, Progress, ReconfigureError};
pub use health::{HealthEvent, HealthKind, Place};
pub use metrics::{METRIC_SCHEMA_VERSION, Metrics, Sample};
pub use options::{RunOptions, Snapshot};
pub use prepared::{Prepared, Run, Running};
pub use result::{ErrorCode, LaneGrant, RunResult, RuntimeError, StopReason};
pub use store::Store;
pub use tap::{Tap, TapError, Tapped};
pub use trace::{Trace, TraceEvent, TraceName};

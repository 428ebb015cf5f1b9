//! Running a graph.

mod async_loop;
mod cadence;
mod channel;
mod commit;
mod control;
mod counts;
mod epoch_start;
mod flight;
mod frontend;
mod health;
mod histogram;
mod invoke;
mod lane;
mod lifecycle;
mod loops;
mod losses;
mod machine;
mod metrics;
mod observer_feed;
mod options;
mod outside;
mod overlap;
mod prepared;
mod recorder;
mod result;
mod store;
mod tables;
mod tap;
mod threads;
mod trace;
mod trigger;
mod under_way;
mod watch;

pub(crate) use under_way::UnderWay;

pub use control::{ConfigTransaction, Control, Progress, ReconfigureError, StepError};
pub use health::{HealthEvent, HealthKind, Place};
pub use losses::{Loss, LossKind};
pub use metrics::{METRIC_SCHEMA_VERSION, Metrics, Sample};
pub use options::{Record, RunOptions, Snapshot};
pub use prepared::{Prepared, Run, Running};
pub use result::{ErrorCode, RunResult, RuntimeError, StopReason};
pub use store::Store;
pub use tap::{Tap, TapError, Tapped};
pub use threads::LaneGrant;
pub use trace::{Trace, TraceEvent, TraceName};

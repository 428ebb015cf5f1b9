//! Running a graph.

mod clock;
mod epoch;
mod exec;
mod frontend;
mod lifecycle;
mod machine;
mod options;
mod outside;
mod prepared;
mod result;
mod sinks;
mod state;

pub(crate) use exec::under_way::UnderWay;

pub use exec::threads::LaneGrant;
pub use options::{Record, RunOptions, Snapshot};
pub use outside::control::{ConfigTransaction, Control, Progress, ReconfigureError, StepError};
pub use outside::tap::{Tap, TapError, Tapped};
pub use prepared::{Prepared, Run, Running};
pub use result::{ErrorCode, RunResult, RuntimeError, StopReason};
pub use sinks::health::{HealthEvent, HealthKind, HealthSubject};
pub use sinks::losses::{Loss, LossKind};
pub use sinks::metrics::{METRIC_SCHEMA_VERSION, Metrics, Sample};
pub use sinks::trace::{Trace, TraceEvent, TraceName};
pub use state::store::Store;

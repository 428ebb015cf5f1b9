//! Running a graph.

mod driver;
mod epoch;
mod exec;
mod frontend;
mod lifecycle;
pub(crate) mod options;
mod outside;
pub(crate) mod prepared;
pub(crate) mod result;
mod run_state;
mod sinks;
mod state;

pub(crate) use exec::under_way::UnderWay;

pub use exec::grants::LaneGrant;
pub use options::{Record, Snapshot};
pub use outside::config::ConfigTransaction;
pub use outside::control::{Control, Progress, ReconfigureError, StepError};
pub use outside::taps::{Tap, TapError, Tapped};
pub use result::{ErrorCode, RuntimeError};
pub use sinks::health::{HealthEvent, HealthKind, HealthSubject};
pub use sinks::losses::{Loss, LossKind};
pub use sinks::metrics::{METRIC_SCHEMA_VERSION, Metrics, Sample};
pub use sinks::trace::{Trace, TraceEvent, TraceName};
pub use state::store::Store;

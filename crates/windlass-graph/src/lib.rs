//! Dataflow graphs: files that describe components, edges and lanes; checked, compiled, run and explained.
#![forbid(unsafe_code)]

pub mod check;
pub mod compile;
pub mod component;
pub mod diagnostic;
mod diff;
mod explain;
mod json_schema;
mod limits;
pub mod lint;
pub mod load;
pub mod model;
pub mod observe;
mod payload;
pub mod record;
pub mod render;
pub mod run;
pub mod source;
mod suggest;

pub use diff::PlanDiff;
pub use explain::{Explained, ExplainedRegion, Explanation};
pub use json_schema::json_schema;
pub use limits::Limits;
pub use load::{LoadOptions, load};
pub use payload::{Data, Object, Payload};
pub use run::{Prepared, Run, RunOptions, RunResult, Running, StopReason};

//! Dataflow graphs: files that describe components, edges and lanes; checked, compiled, run and explained.
#![forbid(unsafe_code)]

pub mod compile;
pub mod component;
pub mod diagnostic;
mod diff;
mod explain;
pub mod model;
mod payload;
pub mod render;
pub mod run;

pub use diff::PlanDiff;
pub use payload::{Data, Object, Payload};
pub use run::{Prepared, Run, RunOptions, RunResult, Running, StopReason};

//! Dataflow graphs: files that describe components, edges and lanes; checked, compiled, run and explained.
#![forbid(unsafe_code)]

pub mod compile;
pub mod component;
pub mod diagnostic;
pub mod model;
mod payload;
pub mod run;

pub use payload::{Data, Object, Payload};
pub use run::{Prepared, Run, RunOptions, RunResult, Running, StopReason};

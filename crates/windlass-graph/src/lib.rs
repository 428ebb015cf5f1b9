//! Dataflow graphs: files that describe components, edges and lanes; checked, compiled, run and explained.
#![forbid(unsafe_code)]

pub mod component;
mod flow;
pub mod observe;
pub mod record;
pub mod run;

pub use flow::flow;
pub use run::{Prepared, Run, RunOptions, RunResult, Running, StopReason};
pub use windlass_plan::{
    Explained, ExplainedRegion, Explanation, Limits, LoadOptions, PlanDiff, check, compile,
    diagnostic, json_schema, lint, load, model, render, source,
};
pub use windlass_value::{Data, Opaque, Payload, PayloadList, PayloadMap, Unwritable};

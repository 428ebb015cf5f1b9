//! Dataflow graphs: files that describe components, edges and lanes; checked, compiled, run and
//! explained.
#![forbid(unsafe_code)]

pub mod component;
mod flow;
pub mod observe;
pub mod record;
pub mod run;

pub use flow::flow;
pub use run::options::RunOptions;
pub use run::prepared::{Prepared, Run, Running};
pub use run::result::{RunResult, StopReason};
pub use windlass_plan::{
    Explained, ExplainedRegion, Explanation, Limits, LoadErrors, LoadOptions, LoadProblem, Loaded,
    Partial, PlanDiff, check, compile, diagnostic, expression, json_schema, lint, load, model,
    render, source,
};

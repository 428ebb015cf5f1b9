//! `windlass graph`: a file for each of its commands.

mod bench;
mod diff_plan;
mod execution;
mod explain;
mod lint;
mod metrics;
mod observe;
mod plan;
mod progress;
mod registry;
mod render;
mod replay;
pub(crate) mod report;
mod run;
pub(crate) mod source;
mod trace;
mod validate;

use crate::args::GraphCommand;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

pub(crate) fn run(command: &GraphCommand, terminal: &Terminal) -> Outcome {
    match command {
        GraphCommand::Validate(args) => validate::run(args, terminal),
        GraphCommand::Plan(args) => plan::run(args, terminal),
        GraphCommand::Render(args) => render::run(args, terminal),
        GraphCommand::Run(args) => run::run(args, terminal),
        GraphCommand::Metrics(args) => metrics::run(args, terminal),
        GraphCommand::Trace(args) => trace::run(args, terminal),
        GraphCommand::Lint(args) => lint::run(args, terminal),
        GraphCommand::Explain(args) => explain::run(args, terminal),
        GraphCommand::DiffPlan(args) => diff_plan::run(args, terminal),
        GraphCommand::Observe(args) => observe::run(args, terminal),
        GraphCommand::Replay(args) => replay::run(args, terminal),
        GraphCommand::Bench(args) => bench::run(args, terminal),
    }
}

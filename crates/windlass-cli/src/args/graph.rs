//! The subcommands of `windlass graph`.

use clap::Subcommand;

use super::{Bench, DiffPlan, Inspect, Metrics, Observe, Render, Replay, Run, Trace, Validate};

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Say everything that is wrong with a file, or could be
    Validate(Validate),
    /// Show what a file is compiled to
    Plan(Inspect),
    /// Draw the plan
    Render(Render),
    /// Run it, and say what came of it
    Run(Run),
    /// Run it, and show what was counted
    Metrics(Metrics),
    /// Run it, and show what happened, in order
    Trace(Trace),
    /// Give advice about a valid file
    Lint(Inspect),
    /// Explain the plan in words
    Explain(Inspect),
    /// Compare the plans of two files
    DiffPlan(DiffPlan),
    /// Run it, and print what happens while it does
    Observe(Observe),
    /// Run a recording again, and say whether it does the same
    Replay(Replay),
    /// Run it several times, and measure the epochs
    Bench(Bench),
}

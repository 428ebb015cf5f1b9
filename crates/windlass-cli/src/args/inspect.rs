//! The arguments of `graph plan`, `graph lint` and `graph explain`.

use clap::Args;

use super::output::Output;
use super::source::Source;

/// A graph file that is not run, and how what is found is printed.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) output: Output,
}

//! The arguments of `graph metrics`.

use clap::Args;

use super::bounds::BoundedGraph;
use super::output::Output;
use super::types::Types;
use crate::outcome::EXIT_CODES;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Metrics {
    #[command(flatten)]
    pub(crate) graph: BoundedGraph,
    #[command(flatten)]
    pub(crate) types: Types,
    /// Show zeros, too; JSON always has them
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

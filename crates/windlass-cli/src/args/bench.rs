//! The arguments of `graph bench`.

use clap::Args;

use super::output::Output;
use super::source::Source;
use super::types::Types;

#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Epochs of each run
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: u64,
    /// Runs that are measured, after one that is not
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: u64,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) output: Output,
}

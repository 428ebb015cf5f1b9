//! The arguments of `graph diff-plan`.

use std::path::PathBuf;

use clap::Args;

use super::output::Output;
use super::source::LimitArgs;

#[derive(Debug, Args)]
pub(crate) struct DiffPlan {
    /// The first file
    #[arg(value_name = "A")]
    pub(crate) one: PathBuf,
    /// The second file
    #[arg(value_name = "B")]
    pub(crate) two: PathBuf,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) output: Output,
}

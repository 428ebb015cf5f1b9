//! The arguments of `windlass schema`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::Output;
use super::source::LimitArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Print the JSON Schema of graph files
    Dump,
    /// Check the form of files, and nothing beyond it
    Check(SchemaCheck),
}

#[derive(Debug, Args)]
pub(crate) struct SchemaCheck {
    /// The graph files; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) output: Output,
}

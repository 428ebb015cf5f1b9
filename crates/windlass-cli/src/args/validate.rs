//! The arguments of `graph validate`.

use clap::Args;

use super::output::Output;
use super::source::Source;

#[derive(Debug, Args)]
pub(crate) struct Validate {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Check the form only: fields, types, limits, templates
    #[arg(long, conflicts_with = "semantic")]
    pub(crate) schema_only: bool,
    /// Check the meaning, too; this is the default
    #[arg(long)]
    pub(crate) semantic: bool,
    #[arg(long, help = "Warnings fail")]
    pub(crate) strict_diagnostics: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

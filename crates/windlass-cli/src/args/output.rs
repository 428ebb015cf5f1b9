//! How a result is printed, and where.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// How a result is printed.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Where a result is written.
#[derive(Debug, Args)]
pub(crate) struct OutputFile {
    /// Write to this file instead of standard output
    #[arg(id = "output", short = 'o', long = "output", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

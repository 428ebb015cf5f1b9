//! The arguments of `graph trace`.

use clap::{Args, ValueEnum};

use super::bounds::BoundedGraph;
use super::output::{Format, OutputFile};
use super::types::Types;
use crate::outcome::EXIT_CODES;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) graph: BoundedGraph,
    #[command(flatten)]
    pub(crate) types: Types,
    /// What to print; `chrome` is for Perfetto
    #[arg(long, value_enum, default_value_t = TraceFormat::Text)]
    pub(crate) format: TraceFormat,
    #[command(flatten)]
    pub(crate) output: OutputFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    Text,
    Json,
    Chrome,
}

impl From<TraceFormat> for Format {
    fn from(format: TraceFormat) -> Format {
        match format {
            TraceFormat::Text => Format::Text,
            TraceFormat::Json | TraceFormat::Chrome => Format::Json,
        }
    }
}

//! The arguments of `graph render`.

use clap::{Args, ValueEnum};

use super::output::{Format, OutputFile};
use super::source::Source;

#[derive(Debug, Args)]
pub(crate) struct Render {
    #[command(flatten)]
    pub(crate) source: Source,
    /// What to draw
    #[arg(long, value_enum, default_value_t = RenderFormat::Mermaid)]
    pub(crate) format: RenderFormat,
    #[command(flatten)]
    pub(crate) output: OutputFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderFormat {
    Mermaid,
    Text,
    Json,
    Dot,
    Svg,
}

impl From<RenderFormat> for Format {
    fn from(format: RenderFormat) -> Format {
        match format {
            RenderFormat::Json => Format::Json,
            _ => Format::Text,
        }
    }
}

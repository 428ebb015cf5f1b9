//! The arguments of `graph replay`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::output::{Format, Output};
use super::source::LimitArgs;
use super::types::Types;

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The folder that was given to --record
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Another graph file than the one that was recorded
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Option<PathBuf>,
    /// Show the first difference
    #[arg(long)]
    pub(crate) diff: bool,
    /// Replay a recording that has no end, up to its last whole epoch
    #[arg(long)]
    pub(crate) partial: bool,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Replay {
    /// Returns the arguments of `graph replay` that `windlass run --replay` stands for.
    pub(crate) fn of(folder: &Path, graph: &Path) -> Replay {
        Replay {
            folder: folder.to_owned(),
            graph: Some(graph.to_owned()),
            diff: true,
            partial: false,
            types: Types {
                stub_unknown: false,
            },
            limits: LimitArgs::default(),
            output: Output {
                format: Format::Text,
            },
        }
    }
}

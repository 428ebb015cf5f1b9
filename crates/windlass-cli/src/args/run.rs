//! The arguments of `graph run`.

use clap::Args;

use super::bounds::{BoundedGraph, RunBounds};
use super::output::{Format, Output};
use super::run_file::RunFile;
use super::source::{LimitArgs, Source};
use super::types::Types;
use crate::outcome::EXIT_CODES;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) graph: BoundedGraph,
    /// Fail if something was dropped, refused or not delivered; with --until-idle also if the graph
    /// never became idle
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Run {
    /// Returns the arguments of `graph run` that `windlass run` stands for.
    pub(crate) fn of(args: &RunFile) -> Run {
        Run {
            graph: BoundedGraph {
                source: Source {
                    file: args.file.clone(),
                    limits: LimitArgs::default(),
                },
                bounds: RunBounds {
                    steps: args.steps,
                    duration_ms: args.duration_ms,
                    until_idle: args.until_idle,
                    stop_ms: args.stop_ms,
                    step_lane: Vec::new(),
                    no_overlap: false,
                    record: args.record.clone(),
                },
            },
            strict: args.strict,
            types: Types {
                stub_unknown: false,
            },
            output: Output {
                format: Format::Text,
            },
        }
    }
}

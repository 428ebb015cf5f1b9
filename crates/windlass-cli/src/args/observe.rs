//! The arguments of `graph observe`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use windlass::graph::observe::Level;

use super::bounds::BoundedGraph;
use super::types::Types;
use crate::outcome::EXIT_CODES;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Observe {
    #[command(flatten)]
    pub(crate) graph: BoundedGraph,
    /// How much is said
    #[arg(long, value_enum, default_value_t = ObserveLevel::Summary, value_name = "LEVEL")]
    pub(crate) observe_level: ObserveLevel,
    /// The least time between two reports of what epochs did; 0 reports each
    #[arg(long, value_name = "MS", default_value_t = 20)]
    pub(crate) interval_ms: u64,
    /// How many events may wait to be printed; more are dropped, and counted
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) event_buffer_capacity: usize,
    /// Print events whose name, component, edge or lane fits this; `*` stands for anything
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,
    /// Do not print events whose name, component, edge or lane fits this
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Print one event in N
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) sample: u64,
    /// A file of assertions
    #[arg(long, value_name = "FILE")]
    pub(crate) assert: Option<PathBuf>,
    /// Dropped events fail
    #[arg(long)]
    pub(crate) fail_on_observer_drop: bool,
    #[command(flatten)]
    pub(crate) types: Types,
    /// How events are printed: each as a line, or only what came of it
    #[arg(long, value_enum, default_value_t = ObserveFormat::Ndjson, value_name = "FORMAT")]
    pub(crate) format: ObserveFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObserveFormat {
    Ndjson,
    JsonSummary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObserveLevel {
    Off,
    Summary,
    Detailed,
    Debug,
}

impl ObserveLevel {
    pub(crate) fn level(self) -> Level {
        match self {
            ObserveLevel::Off => Level::Off,
            ObserveLevel::Summary => Level::Summary,
            ObserveLevel::Detailed => Level::Detailed,
            ObserveLevel::Debug => Level::Debug,
        }
    }
}

//! When a run ends.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use windlass::graph::RunOptions;
use windlass::graph::run::Record;

use super::source::Source;

/// A graph file, and when its run ends.
#[derive(Debug, Args)]
pub(crate) struct BoundedGraph {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) bounds: RunBounds,
}

/// When a run ends.
#[derive(Debug, Args)]
pub(crate) struct RunBounds {
    /// How many epochs; 0 is 1, or 1000 with --until-idle, or any number with --duration-ms
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) steps: u64,
    /// Begin no epoch after this time; 0 is no limit
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) duration_ms: u64,
    /// End after the first epoch in which nothing ran
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// How long the run has to stop after Ctrl-C, SIGTERM or --duration-ms, in ms
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub(crate) stop_ms: u64,
    /// Step this lane of type manual_step in every epoch; may be given several times
    #[arg(long, value_name = "LANE")]
    pub(crate) step_lane: Vec<String>,
    /// Run one region after another, whatever the lanes; the results are the same
    #[arg(long)]
    pub(crate) no_overlap: bool,
    /// Record the run in this folder, for `graph replay`
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

impl RunBounds {
    pub(crate) fn options(&self) -> RunOptions {
        RunOptions {
            steps: (self.steps > 0).then_some(self.steps),
            duration: (self.duration_ms > 0).then(|| Duration::from_millis(self.duration_ms)),
            until_idle: self.until_idle,
            stop_within: Duration::from_millis(self.stop_ms),
            step_lanes: self.step_lane.clone(),
            overlap: !self.no_overlap,
            record: self.record.clone().map(Record::to),
            ..RunOptions::default()
        }
    }
}

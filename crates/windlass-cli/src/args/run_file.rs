//! The arguments of `windlass run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::outcome::EXIT_CODES;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct RunFile {
    /// The script, or the graph file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What `main` of the script is given, as texts
    #[arg(
        value_name = "ARGS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) args: Vec<String>,
    /// How many guests run at once [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Who decides which guest runs when [default: pool, or reactor for a recording]
    #[arg(long, value_enum)]
    pub(crate) placement: Option<PlacementArg>,
    /// Record every decision and everything from outside: in this file; for a graph, in this folder
    #[arg(long, value_name = "PATH")]
    pub(crate) record: Option<PathBuf>,
    /// Run this recording again, and say whether it does the same
    #[arg(long, value_name = "PATH")]
    pub(crate) replay: Option<PathBuf>,
    /// Let processes go on with changed files
    #[arg(long)]
    pub(crate) watch: bool,
    /// Let scripts read and write in this folder; may be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_fs: Vec<PathBuf>,
    /// Let scripts send requests to this host: a name, name:port, .domain or *; may be given
    /// several times
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_net: Vec<String>,
    /// Let scripts read the environment
    #[arg(long)]
    pub(crate) allow_env: bool,
    /// The memory that each process may have, in MiB [default: 256]
    #[arg(long, value_name = "MIB", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) memory: Option<u32>,
    /// How long a task may run while others are ready, in ms [default: 10]
    #[arg(long, value_name = "MS")]
    pub(crate) slice_ms: Option<u64>,
    /// How long everything has to stop after Ctrl-C, SIGTERM or --duration-ms, in ms
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub(crate) stop_ms: u64,
    /// For graphs: how many epochs
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) steps: u64,
    /// For graphs: begin no epoch after this time
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub(crate) duration_ms: u64,
    /// For graphs: end after the first epoch in which nothing ran
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// For graphs: fail if something was dropped, refused or not delivered; with --until-idle also
    /// if the graph never became idle
    #[arg(long)]
    pub(crate) strict: bool,
}

/// What decides which guest runs when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementArg {
    /// Each worker for itself: faster
    Pool,
    /// One control loop: can be recorded and replayed
    Reactor,
}

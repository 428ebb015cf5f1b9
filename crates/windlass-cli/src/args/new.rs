//! The arguments of `windlass new`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum NewCommand {
    /// Make a folder with a graph that runs at once
    Graph(NewGraph),
}

#[derive(Debug, Args)]
pub(crate) struct NewGraph {
    /// The name of the graph and of its folder
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Where the folder is made; made itself if it is not there [default: here]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

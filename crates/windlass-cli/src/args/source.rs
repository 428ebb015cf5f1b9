//! The graph file that a command reads, and how large it may be.

use std::path::PathBuf;

use clap::Args;
use windlass::graph::Limits;

/// A graph file, and how large it may be.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The graph file; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// How large a file may be; what is not given stays as it is.
#[derive(Debug, Default, Args)]
pub(crate) struct LimitArgs {
    /// Bytes of a file [default: 1048576]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_graph_input_bytes: Option<usize>,
    /// Lanes [default: 256]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_lanes: Option<usize>,
    /// Components [default: 4096]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_components: Option<usize>,
    /// Edges [default: 8192]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_edges: Option<usize>,
    /// Composite loops [default: 1024]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_loops: Option<usize>,
    /// Bytes of an id [default: 128]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_id_bytes: Option<usize>,
    /// Levels of a config [default: 8]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_config_depth: Option<usize>,
    /// Bytes of a string [default: 4096, and 65536 for a `script`]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_config_value_bytes: Option<usize>,
    /// YAML aliases [default: 32]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    max_aliases: Option<usize>,
}

impl LimitArgs {
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        let strings = self.max_config_value_bytes.unwrap_or(usual.string_bytes);
        Limits {
            input_bytes: self.max_graph_input_bytes.unwrap_or(usual.input_bytes),
            lanes: self.max_lanes.unwrap_or(usual.lanes),
            components: self.max_components.unwrap_or(usual.components),
            edges: self.max_edges.unwrap_or(usual.edges),
            loops: self.max_loops.unwrap_or(usual.loops),
            id_bytes: self.max_id_bytes.unwrap_or(usual.id_bytes),
            config_depth: self.max_config_depth.unwrap_or(usual.config_depth),
            string_bytes: strings,
            // A script may always be as long as any other string.
            script_bytes: usual.script_bytes.max(strings),
            aliases: self.max_aliases.unwrap_or(usual.aliases),
        }
    }
}

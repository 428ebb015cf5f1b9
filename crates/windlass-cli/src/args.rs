//! What can be said on the command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use windlass::graph::observe::Level;
use windlass::graph::run::Record;
use windlass::graph::{Limits, RunOptions};

use crate::outcome::EXIT_CODES;

/// Lua scripts and graphs on the Windlass runtime: run, recorded and replayed; graphs also checked, planned and drawn
#[derive(Debug, Parser)]
#[command(name = "windlass", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// When to use colour; `auto` means on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a script (.lua) or a graph (.yaml)
    Run(RunFile),
    /// Work with a graph file
    Graph {
        #[command(subcommand)]
        command: GraphCommand,
    },
    /// The form of graph files
    Schema {
        #[command(subcommand)]
        command: SchemaCommand,
    },
    /// Make a folder to begin with
    New {
        #[command(subcommand)]
        command: NewCommand,
    },
    /// Tell what this machine grants to lanes, and how to get the rest
    Doctor(Doctor),
    /// Print the completions of a shell
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Say everything that is wrong with a file, or could be
    Validate(Validate),
    /// Show what a file is compiled to
    Plan(Plan),
    /// Draw the plan
    Render(Render),
    /// Run it, and say what came of it
    Run(Run),
    /// Run it, and show what was counted
    Metrics(Metrics),
    /// Run it, and show what happened, in order
    Trace(Trace),
    /// Give advice about a valid file
    Lint(Lint),
    /// Explain the plan in words
    Explain(Explain),
    /// Compare the plans of two files
    DiffPlan(DiffPlan),
    /// Run it, and print what happens while it does
    Observe(Observe),
    /// Run a recording again, and say whether it does the same
    Replay(Replay),
    /// Run it several times, and measure the epochs
    Bench(Bench),
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Print the JSON Schema of graph files
    Dump,
    /// Check the form of files, and nothing beyond it
    Check(SchemaCheck),
}

#[derive(Debug, Subcommand)]
pub(crate) enum NewCommand {
    /// Make a folder with a graph that runs at once
    Graph(NewGraph),
}

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
    /// Let scripts send requests to this host: a name, name:port, .domain or *; may be given several times
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
    /// For graphs: fail if something was dropped, refused or not delivered; with --until-idle also if the
    /// graph never became idle
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Who decides which guest runs when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementArg {
    /// Each worker for itself: faster
    Pool,
    /// One control loop: can be recorded and replayed
    Reactor,
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

#[derive(Debug, Args)]
pub(crate) struct Validate {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Check the form only: fields, types, limits, templates
    #[arg(long, conflicts_with = "semantic")]
    pub(crate) schema_only: bool,
    /// Check the meaning, too; this is the default
    #[arg(long)]
    pub(crate) semantic: bool,
    /// Warnings fail
    #[arg(long)]
    pub(crate) strict_diagnostics: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Render {
    #[command(flatten)]
    pub(crate) source: Source,
    /// What to draw
    #[arg(long, value_enum, default_value_t = RenderFormat::Mermaid)]
    pub(crate) format: RenderFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) bounds: RunBounds,
    /// Fail if something was dropped, refused or not delivered; with --until-idle also if the graph never
    /// became idle
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Metrics {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) bounds: RunBounds,
    #[command(flatten)]
    pub(crate) types: Types,
    /// Show zeros, too; JSON always has them
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Trace {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) bounds: RunBounds,
    #[command(flatten)]
    pub(crate) types: Types,
    /// What to print; `chrome` is for Perfetto
    #[arg(long, value_enum, default_value_t = TraceFormat::Text)]
    pub(crate) format: TraceFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct DiffPlan {
    /// The first file
    #[arg(value_name = "A")]
    pub(crate) one: PathBuf,
    /// The second file
    #[arg(value_name = "B")]
    pub(crate) two: PathBuf,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Epochs of each run
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: u64,
    /// Runs that are measured, after one that is not
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: u64,
    #[command(flatten)]
    pub(crate) types: Types,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Observe {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) bounds: RunBounds,
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

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaCheck {
    /// The graph files; `-` reads standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A graph file, and how large it may be.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The graph file; `-` reads standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// How a result is printed.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
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

/// Which component types there are.
#[derive(Debug, Args)]
pub(crate) struct Types {
    /// Let stubs stand in for unknown component types: they forward what comes
    #[arg(long)]
    pub(crate) stub_unknown: bool,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    Text,
    Json,
    Chrome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RenderFormat {
    Mermaid,
    Text,
    Json,
    Dot,
    Svg,
}

/// Reads the command line.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let mut command = command(color_of(&arguments));
    let matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The command with its subcommands, for the parser and for completions.
pub(crate) fn command(color: clap::ColorChoice) -> clap::Command {
    Cli::command().color(color)
}

/// The colour that was asked for; the parser itself needs it for help and errors, before it has read anything.
fn color_of(arguments: &[OsString]) -> clap::ColorChoice {
    let texts: Vec<&str> = arguments.iter().filter_map(|a| a.to_str()).collect();
    let after_flag = texts.windows(2).filter(|pair| pair[0] == "--color");
    let asked = after_flag
        .map(|pair| pair[1])
        .chain(texts.iter().filter_map(|t| t.strip_prefix("--color=")))
        .next_back();
    match asked {
        Some("always") => clap::ColorChoice::Always,
        Some("never") => clap::ColorChoice::Never,
        _ => clap::ColorChoice::Auto,
    }
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

impl Run {
    /// As `windlass run` says it.
    pub(crate) fn of(args: &RunFile) -> Run {
        Run {
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

impl Replay {
    /// As `windlass run` says it.
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

impl From<TraceFormat> for Format {
    fn from(format: TraceFormat) -> Format {
        match format {
            TraceFormat::Text => Format::Text,
            TraceFormat::Json | TraceFormat::Chrome => Format::Json,
        }
    }
}

impl From<RenderFormat> for Format {
    fn from(format: RenderFormat) -> Format {
        match format {
            RenderFormat::Json => Format::Json,
            _ => Format::Text,
        }
    }
}

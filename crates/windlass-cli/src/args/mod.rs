//! The command line: a file for the arguments of each subcommand, and for each group of arguments
//! that several of them share (`source.rs`, `bounds.rs`, `types.rs`, `output.rs`).

mod bench;
mod bounds;
mod diff_plan;
mod doctor;
mod graph;
mod inspect;
mod metrics;
mod new;
mod observe;
mod output;
mod render;
mod replay;
mod run;
mod run_file;
mod schema;
mod source;
mod trace;
mod types;
mod validate;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::outcome::EXIT_CODES;

pub(crate) use bench::Bench;
pub(crate) use diff_plan::DiffPlan;
pub(crate) use doctor::Doctor;
pub(crate) use graph::GraphCommand;
pub(crate) use inspect::Inspect;
pub(crate) use metrics::Metrics;
pub(crate) use new::{NewCommand, NewGraph};
pub(crate) use observe::{Observe, ObserveFormat};
pub(crate) use output::Format;
pub(crate) use render::{Render, RenderFormat};
pub(crate) use replay::Replay;
pub(crate) use run::Run;
pub(crate) use run_file::{PlacementArg, RunFile};
pub(crate) use schema::{SchemaCheck, SchemaCommand};
pub(crate) use source::Source;
pub(crate) use trace::{Trace, TraceFormat};
pub(crate) use types::Types;
pub(crate) use validate::Validate;

/// Lua scripts and graphs on the Windlass runtime: run, recorded and replayed; graphs also checked,
/// planned and drawn
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
        #[arg(value_enum, help = "The shell")]
        shell: Shell,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
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

/// The colour that was asked for; the parser itself needs it for help and errors, before it has
/// read anything.
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

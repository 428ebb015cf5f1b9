//! The windlass command.
#![forbid(unsafe_code)]

mod args;
mod completions;
mod doctor;
mod graph;
mod new;
mod outcome;
mod run;
mod schema;
mod stopping;
mod terminal;

use std::process::ExitCode;

use args::{Cli, Command};
use outcome::Outcome;
use terminal::Terminal;

fn main() -> ExitCode {
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(error) => return outcome::usage(&error),
    };
    let terminal = Terminal::new(cli.color);
    let code = outcome::exit_code(run(&cli, &terminal), &terminal);
    // Of a command that could not be stopped nothing stays behind.
    windlass::process::kill_bound();
    code
}

fn run(cli: &Cli, terminal: &Terminal) -> Outcome {
    match &cli.command {
        Command::Run(args) => run::run(args, terminal),
        Command::Graph { command } => graph::run(command, terminal),
        Command::Schema { command } => schema::run(command, terminal),
        Command::New { command } => new::run(command, terminal),
        Command::Doctor(args) => doctor::run(args, terminal),
        Command::Completions { shell } => completions::run(*shell, terminal),
    }
}

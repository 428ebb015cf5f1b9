//! `windlass new`: folders to begin with.

mod error;
mod graph;

pub(crate) use error::NewError;

use crate::args::NewCommand;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

pub(crate) fn run(command: &NewCommand, terminal: &Terminal) -> Outcome {
    match command {
        NewCommand::Graph(args) => graph::run(args, terminal),
    }
}

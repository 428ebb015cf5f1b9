//! `windlass run`: one verb for scripts and for graphs.

mod graph;
mod script;
mod watch;

pub(crate) use script::print;

use crate::args::RunFile;
use crate::outcome::{Error, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &RunFile, terminal: &Terminal) -> Outcome {
    let ending = args.file.extension().and_then(|ending| ending.to_str());
    match ending {
        Some("lua") => script::run(args, terminal),
        Some("yaml" | "yml") => graph::run(args, terminal),
        _ => Err(Error::UnknownKind(args.file.display().to_string())),
    }
}

/// Refuses an option that is for the other kind of file.
fn refuse(given: bool, option: &'static str, needs: &'static str) -> Result<(), Error> {
    match given {
        true => Err(Error::NotForThis { option, needs }),
        false => Ok(()),
    }
}

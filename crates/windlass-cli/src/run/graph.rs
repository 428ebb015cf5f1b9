//! A graph: what `windlass graph run` and `windlass graph replay` do.

use super::refuse;
use crate::args::{GraphCommand, Replay, Run, RunFile};
use crate::graph;
use crate::outcome::Outcome;
use crate::terminal::Terminal;

const SCRIPTS: &str = "scripts";

pub(super) fn run(args: &RunFile, terminal: &Terminal) -> Outcome {
    refuse(!args.args.is_empty(), "an argument", SCRIPTS)?;
    refuse(args.workers.is_some(), "--workers", SCRIPTS)?;
    refuse(args.placement.is_some(), "--placement", SCRIPTS)?;
    refuse(args.memory.is_some(), "--memory", SCRIPTS)?;
    refuse(args.slice_ms.is_some(), "--slice-ms", SCRIPTS)?;
    refuse(args.watch, "--watch", SCRIPTS)?;
    refuse(!args.allow_fs.is_empty(), "--allow-fs", SCRIPTS)?;
    refuse(!args.allow_net.is_empty(), "--allow-net", SCRIPTS)?;
    refuse(args.allow_env, "--allow-env", SCRIPTS)?;
    match &args.replay {
        Some(folder) => {
            let command = GraphCommand::Replay(Replay::of(folder, &args.file));
            graph::run(&command, terminal)
        }
        None => graph::run(&GraphCommand::Run(Run::of(args)), terminal),
    }
}

//! `windlass completions`.

use clap_complete::Shell;

use crate::args;
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(shell: Shell, terminal: &Terminal) -> Outcome {
    let mut command = args::command(clap::ColorChoice::Never);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "windlass", &mut script);
    terminal.print(&String::from_utf8_lossy(&script))?;
    Ok(Verdict::Fine)
}

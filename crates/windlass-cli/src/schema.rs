//! `windlass schema`: the form of graph files.

use windlass::graph::json_schema;

use crate::args::{SchemaCheck, SchemaCommand};
use crate::graph::report;
use crate::graph::source::{self, FileName};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::{Terminal, pretty};

pub(crate) fn run(command: &SchemaCommand, terminal: &Terminal) -> Outcome {
    match command {
        SchemaCommand::Dump => {
            terminal.print(&pretty(&json_schema()))?;
            Ok(Verdict::Fine)
        }
        SchemaCommand::Check(check) => self::check(check, terminal),
    }
}

/// Looks at every file, also after one that is wrong.
fn check(args: &SchemaCheck, terminal: &Terminal) -> Outcome {
    source::stdin_once(&args.files)?;
    let limits = args.limits.limits();
    let mut all_fine = true;
    for file in &args.files {
        let opened = match source::load(file, &limits) {
            Ok(opened) => opened,
            Err(error) => {
                all_fine = false;
                terminal.note(&format!("error: {error}"));
                continue;
            }
        };
        let fine = !opened.findings.has_errors();
        all_fine &= fine;
        terminal.print(&format!("ok: {fine}  {}\n", FileName(file)))?;
        report::show(&opened.findings, terminal);
    }
    Ok(Verdict::fine_if(all_fine))
}

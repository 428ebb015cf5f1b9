//! `windlass schema`: the form of graph files.

use serde::Serialize;
use windlass::graph::json_schema;

use crate::args::{Format, SchemaCheck, SchemaCommand};
use crate::graph::report;
use crate::graph::report::Document;
use crate::graph::source::{self, FileName};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(command: &SchemaCommand, terminal: &Terminal) -> Outcome {
    match command {
        SchemaCommand::Dump => {
            terminal.print_json(&json_schema())?;
            Ok(Verdict::Fine)
        }
        SchemaCommand::Check(check) => self::check(check, terminal),
    }
}

/// Looks at every file, also after one that is wrong.
fn check(args: &SchemaCheck, terminal: &Terminal) -> Outcome {
    source::stdin_once(&args.files)?;
    let limits = args.limits.limits();
    let mut checked = Vec::with_capacity(args.files.len());
    for file in &args.files {
        checked.push((FileName(file), source::load(file, &limits)));
    }
    let files: Vec<FileDocument<'_>> = checked
        .iter()
        .map(|(name, opened)| FileDocument {
            file: name.to_string(),
            document: Document::of_form(opened),
        })
        .collect();
    let ok = files.iter().all(|file| file.document.ok);
    match args.output.format {
        Format::Json => terminal.print_json(&CheckDocument { ok, files })?,
        Format::Text => {
            for ((name, opened), file) in checked.iter().zip(&files) {
                match opened {
                    Ok(there) => {
                        terminal.print(&format!("ok: {}  {name}\n", file.document.ok))?;
                        report::show(&there.findings, terminal);
                    }
                    Err(error) => terminal.note(&format!("error: {error}")),
                }
            }
        }
    }
    Ok(Verdict::fine_if(ok))
}

/// What is printed about all files.
#[derive(Serialize)]
struct CheckDocument<'a> {
    ok: bool,
    files: Vec<FileDocument<'a>>,
}

/// What `graph validate` says about a file, as far as its form goes, with its name.
#[derive(Serialize)]
struct FileDocument<'a> {
    file: String,
    #[serde(flatten)]
    document: Document<'a>,
}

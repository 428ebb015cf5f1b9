//! `windlass schema`: the form of graph files.

use serde_json::{Value, json};
use windlass::graph::diagnostic::Severity;
use windlass::graph::json_schema;

use crate::args::{Format, SchemaCheck, SchemaCommand};
use crate::graph::report;
use crate::graph::source::{self, FileName, Opened};
use crate::outcome::{Error, Outcome, Verdict};
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
    let mut checked = Vec::with_capacity(args.files.len());
    for file in &args.files {
        checked.push((FileName(file), source::load(file, &limits)));
    }
    let fine = |opened: &Result<Opened, Error>| {
        opened
            .as_ref()
            .is_ok_and(|opened| !opened.findings.has_errors())
    };
    let all_fine = checked.iter().all(|(_, opened)| fine(opened));
    match args.output.format {
        Format::Json => {
            let files: Vec<Value> = checked.iter().map(|(n, o)| file_json(n, o)).collect();
            terminal.print(&pretty(&json!({"ok": all_fine, "files": files})))?;
        }
        Format::Text => {
            for (name, opened) in &checked {
                match opened {
                    Ok(there) => {
                        terminal.print(&format!("ok: {}  {name}\n", fine(opened)))?;
                        report::show(&there.findings, terminal);
                    }
                    Err(error) => terminal.note(&format!("error: {error}")),
                }
            }
        }
    }
    Ok(Verdict::fine_if(all_fine))
}

/// What `graph validate` says about a file, as far as its form goes, with its name.
fn file_json(name: &FileName<'_>, opened: &Result<Opened, Error>) -> Value {
    let mut file = match opened {
        Ok(opened) => report::to_json(&opened.findings, Severity::Error, &[]),
        Err(error) => json!({"ok": false, "errors": [error.to_string()], "diagnostics": []}),
    };
    if let Some(fields) = file.as_object_mut() {
        fields.insert("file".to_owned(), name.to_string().into());
        fields.remove("region_order");
    }
    file
}

//! `windlass graph lint`.

use serde::Serialize;
use windlass::graph::lint::{Finding, lint};

use super::registry::registry;
use super::source::{self, Valid};
use crate::args::{Format, Inspect};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &Inspect, terminal: &Terminal) -> Outcome {
    let registry = registry();
    let format = args.output.format;
    let Some(valid) = source::valid(&args.source, &registry, format, terminal)? else {
        return Ok(Verdict::Bad);
    };
    let findings = lint(&valid.graph, &registry);
    match format {
        Format::Text => terminal.print(&to_text(&valid, &findings))?,
        Format::Json => terminal.print_json(&Document::new(&valid, &findings))?,
    }
    // Advice is no reason to fail.
    Ok(Verdict::Fine)
}

fn to_text(valid: &Valid, findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let place = match place(valid, finding) {
            Some((line, column)) => format!("{line}:{column}"),
            None => finding.graph_path.clone(),
        };
        let (name, rule) = (&valid.name, finding.rule);
        text.push_str(&format!("{name}:{place}: {rule}: {}\n", finding.message));
    }
    text.push_str(&format!("findings: {}\n", findings.len()));
    text
}

/// The document that is printed.
#[derive(Serialize)]
struct Document<'a> {
    graph: &'a str,
    findings: Vec<FindingDocument<'a>>,
}

/// A finding with its place in the text.
#[derive(Serialize)]
struct FindingDocument<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    line: Option<usize>,
    column: Option<usize>,
}

impl<'a> Document<'a> {
    fn new(valid: &'a Valid, findings: &'a [Finding]) -> Document<'a> {
        let finding = |finding: &'a Finding| {
            let place = place(valid, finding);
            FindingDocument {
                finding,
                line: place.map(|(line, _)| line),
                column: place.map(|(_, column)| column),
            }
        };
        Document {
            graph: &valid.graph.name,
            findings: findings.iter().map(finding).collect(),
        }
    }
}

fn place(valid: &Valid, finding: &Finding) -> Option<(usize, usize)> {
    let span = valid.sources.span_of(&finding.graph_path)?;
    Some(valid.sources.line_col(span.start))
}

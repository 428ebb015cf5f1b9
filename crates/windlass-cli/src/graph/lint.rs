//! `windlass graph lint`.

use serde_json::{Value, json};
use windlass::graph::check::Level;
use windlass::graph::lint::{Finding, lint};

use super::registry::registry;
use super::source::{self, Valid};
use crate::args::{Format, Lint};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::{Terminal, pretty};

pub(crate) fn run(args: &Lint, terminal: &Terminal) -> Outcome {
    let registry = registry();
    let format = args.output.format;
    let Some(valid) = source::valid(&args.source, &registry, Level::Schema, format, terminal)?
    else {
        return Ok(Verdict::Bad);
    };
    let findings = lint(&valid.graph, &registry);
    terminal.print(&match format {
        Format::Text => to_text(&valid, &findings),
        Format::Json => pretty(&to_json(&valid, &findings)),
    })?;
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

fn to_json(valid: &Valid, findings: &[Finding]) -> Value {
    let finding = |finding: &Finding| {
        let place = place(valid, finding);
        json!({
            "rule": finding.rule.name(),
            "message": finding.message,
            "graph_path": finding.graph_path,
            "component": finding.component,
            "edge": finding.edge,
            "line": place.map(|(line, _)| line),
            "column": place.map(|(_, column)| column),
        })
    };
    json!({
        "graph": valid.graph.name,
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn place(valid: &Valid, finding: &Finding) -> Option<(usize, usize)> {
    let span = valid.sources.span_of(&finding.graph_path)?;
    Some(valid.sources.line_col(span.start))
}

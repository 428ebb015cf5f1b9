//! `windlass graph validate`.

use windlass::graph::check::Level;
use windlass::graph::compile::compile;
use windlass::graph::diagnostic::Severity;

use super::registry::registry;
use super::report::{self, Document};
use super::source::{self, Findings};
use crate::args::{Format, Validate};
use crate::outcome::{Error, Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &Validate, terminal: &Terminal) -> Outcome {
    let mut opened = source::load(&args.source.file, &args.source.limits.limits())?;
    if !args.schema_only {
        opened.check(&registry(), Level::OwnTypes);
    }
    let failing = match args.strict_diagnostics {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let findings = opened.findings;
    // Whether a graph can be compiled is known once it was checked.
    let plan = match opened.graph {
        Some(graph) if !args.schema_only && !findings.has_errors() => {
            Some(compile(graph).map_err(Error::Compile)?)
        }
        _ => None,
    };
    let order = plan.as_ref().map(|plan| plan.region_order());
    let order = order.unwrap_or_default();
    let ok = report::failures(&findings, failing).next().is_none();
    match args.output.format {
        Format::Json => {
            terminal.print_json(&Document::new(&findings, failing, &order))?;
        }
        Format::Text => {
            report::show(&findings, terminal);
            terminal.print(&summary(&findings, ok, &order))?;
        }
    }
    Ok(Verdict::fine_if(ok))
}

fn summary(findings: &Findings, ok: bool, order: &[&str]) -> String {
    let counts = [
        ("errors", Severity::Error),
        ("warnings", Severity::Warning),
        ("advisories", Severity::Advisory),
        ("notes", Severity::Info),
    ];
    let mut text = format!("ok: {ok}\n");
    for (name, severity) in counts {
        text.push_str(&format!("{name}: {}\n", findings.count(severity)));
    }
    if !order.is_empty() {
        text.push_str(&format!("region_order: {}\n", order.join(", ")));
    }
    text
}

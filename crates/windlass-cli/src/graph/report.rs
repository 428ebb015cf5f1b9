//! Findings as reports for people and as JSON.

use std::fmt;

use miette::{LabeledSpan, MietteHandlerOpts, NamedSource, ReportHandler, SourceCode};
use serde_json::{Value, json};
use windlass::graph::diagnostic::{DIAGNOSTICS_SCHEMA_VERSION, Severity};
use windlass::graph::source::{SourceMap, Span};

use super::source::{Findings, Found};
use crate::args::Format;
use crate::outcome::Error;
use crate::terminal::{Terminal, pretty};

/// How many findings are shown with their text; each costs a look at the whole file. The others get a line.
const MOST_WITH_TEXT: usize = 64;

/// Says why a file is refused: reports for people, or the document of `graph validate`.
pub(crate) fn refuse(
    findings: &Findings,
    format: Format,
    terminal: &Terminal,
) -> Result<(), Error> {
    match format {
        Format::Text => {
            show(findings, terminal);
            Ok(())
        }
        Format::Json => terminal.print(&pretty(&to_json(findings, Severity::Error, &[]))),
    }
}

/// Shows all findings on standard error: the line, what is wrong with it, and what to do.
pub(crate) fn show(findings: &Findings, terminal: &Terminal) {
    let handler = MietteHandlerOpts::new()
        .color(terminal.colored)
        .terminal_links(false)
        // A line of a log stays one line.
        .wrap_lines(terminal.watched)
        .build();
    let text = findings.sources.text().to_owned();
    let source = NamedSource::new(&findings.name, text).with_language("yaml");
    let (with_text, others) = findings
        .found
        .split_at(findings.found.len().min(MOST_WITH_TEXT));
    for found in with_text {
        let report = Report {
            found,
            source: &source,
            label: found.span.map(|span| label(found, span, &findings.sources)),
        };
        terminal.note(&Shown(&handler, &report).to_string());
    }
    for found in others {
        let place = place(found, &findings.sources);
        terminal.note(&format!("{}:{place}{}", findings.name, found.diagnostic));
    }
}

/// The document of `graph validate`. What is at least as bad as `failing` is an error.
pub(crate) fn to_json(findings: &Findings, failing: Severity, region_order: &[&str]) -> Value {
    let errors: Vec<String> = failures(findings, failing)
        .map(|found| {
            let place = place(found, &findings.sources);
            format!("{place}{}", found.diagnostic.message)
        })
        .collect();
    let diagnostics = findings.found.iter();
    let diagnostics = diagnostics.map(|found| diagnostic_json(found, &findings.sources));
    json!({
        "ok": errors.is_empty(),
        "errors": errors,
        "diagnostics_schema_version": DIAGNOSTICS_SCHEMA_VERSION,
        "diagnostics": diagnostics.collect::<Vec<_>>(),
        "region_order": region_order,
    })
}

/// What is at least as bad as `failing`.
pub(crate) fn failures(findings: &Findings, failing: Severity) -> impl Iterator<Item = &Found> {
    let found = findings.found.iter();
    found.filter(move |found| found.diagnostic.severity() >= failing)
}

fn diagnostic_json(found: &Found, sources: &SourceMap) -> Value {
    let diagnostic = &found.diagnostic;
    let place = found.span.map(|span| sources.line_col(span.start));
    json!({
        "code": diagnostic.code.name(),
        "severity": diagnostic.severity().name(),
        "category": diagnostic.code.category().name(),
        "message": diagnostic.message,
        "graph_path": diagnostic.graph_path,
        "involved_components": diagnostic.involved_components,
        "involved_edges": diagnostic.involved_edges,
        "suggested_fix": diagnostic.suggested_fix,
        "line": place.map(|(line, _)| line),
        "column": place.map(|(_, column)| column),
    })
}

/// `line:column: `, or nothing if it is about the file as a whole.
fn place(found: &Found, sources: &SourceMap) -> String {
    match found.span {
        Some(span) => {
            let (line, column) = sources.line_col(span.start);
            format!("{line}:{column}: ")
        }
        None => String::new(),
    }
}

/// What is underlined: the first line of a span, which may be as long as the file.
fn label(found: &Found, span: Span, sources: &SourceMap) -> LabeledSpan {
    let text = sources.text();
    let start = span.start.min(text.len());
    let end = span.end.clamp(start, text.len());
    let length = text.get(start..end).map_or(0, |spanned| {
        let line = spanned.lines().next().unwrap_or_default();
        line.trim_end().len()
    });
    let path = match found.diagnostic.graph_path.as_str() {
        "" => "here",
        path => path,
    };
    LabeledSpan::new(Some(path.to_owned()), start, length)
}

/// A finding as a report.
#[derive(Debug)]
struct Report<'a> {
    found: &'a Found,
    source: &'a NamedSource<String>,
    label: Option<LabeledSpan>,
}

impl miette::Diagnostic for Report<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.found.diagnostic.code.name()))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.found.diagnostic.severity() {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
            Severity::Advisory | Severity::Info => miette::Severity::Advice,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let fix = &self.found.diagnostic.suggested_fix;
        (!fix.is_empty()).then(|| Box::new(fix) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.label.as_ref()?;
        Some(self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = self.label.clone()?;
        Some(Box::new(std::iter::once(label)))
    }
}

impl std::error::Error for Report<'_> {}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.found.diagnostic.message)
    }
}

/// A report as text.
struct Shown<'a, H>(&'a H, &'a Report<'a>);

impl<H: ReportHandler> fmt::Display for Shown<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(self.1, f)
    }
}

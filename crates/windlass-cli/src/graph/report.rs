//! Findings as reports for people and as JSON.

use std::fmt;

use miette::{LabeledSpan, MietteHandlerOpts, NamedSource, ReportHandler, SourceCode};
use serde::Serialize;
use windlass::graph::diagnostic::{Category, DIAGNOSTICS_SCHEMA_VERSION, Diagnostic, Severity};
use windlass::graph::source::{SourceMap, Span};

use super::source::{Findings, LoadedFile, LocatedDiagnostic};
use crate::args::Format;
use crate::outcome::Error;
use crate::terminal::Terminal;

/// How many findings are shown with their text; each costs a look at the whole file. The others get
/// a line.
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
        Format::Json => terminal.print_json(&Document::new(findings, Severity::Error, &[])),
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
        terminal.note(&RenderedReport(&handler, &report).to_string());
    }
    for found in others {
        let place = place(found, &findings.sources);
        terminal.note(&format!("{}:{place}{}", findings.name, found.diagnostic));
    }
}

/// The document of `graph validate`.
#[derive(Serialize)]
pub(crate) struct Document<'a> {
    pub(crate) ok: bool,
    errors: Vec<String>,
    /// None for a file that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics_schema_version: Option<&'static str>,
    diagnostics: Vec<DiagnosticDocument<'a>>,
    /// None in the document of `schema check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    region_order: Option<&'a [&'a str]>,
}

impl<'a> Document<'a> {
    /// Makes the document of a file. What is at least as bad as `failing` is an error.
    pub(crate) fn new(
        findings: &'a Findings,
        failing: Severity,
        region_order: &'a [&'a str],
    ) -> Document<'a> {
        let errors: Vec<String> = failures(findings, failing)
            .map(|found| {
                let place = place(found, &findings.sources);
                format!("{place}{}", found.diagnostic.message)
            })
            .collect();
        let diagnostics = findings.found.iter();
        let diagnostics =
            diagnostics.map(|found| DiagnosticDocument::new(found, &findings.sources));
        Document {
            ok: errors.is_empty(),
            errors,
            diagnostics_schema_version: Some(DIAGNOSTICS_SCHEMA_VERSION),
            diagnostics: diagnostics.collect(),
            region_order: Some(region_order),
        }
    }

    /// Makes the document of a file of which only the form was checked, or which could not be read.
    pub(crate) fn of_form(opened: &'a Result<LoadedFile, Error>) -> Document<'a> {
        match opened {
            Ok(opened) => Document {
                region_order: None,
                ..Document::new(&opened.findings, Severity::Error, &[])
            },
            Err(error) => Document {
                ok: false,
                errors: vec![error.to_string()],
                diagnostics_schema_version: None,
                diagnostics: Vec::new(),
                region_order: None,
            },
        }
    }
}

/// What is at least as bad as `failing`.
pub(crate) fn failures(
    findings: &Findings,
    failing: Severity,
) -> impl Iterator<Item = &LocatedDiagnostic> {
    let found = findings.found.iter();
    found.filter(move |found| found.diagnostic.severity() >= failing)
}

/// A finding with its place in the text.
#[derive(Serialize)]
struct DiagnosticDocument<'a> {
    #[serde(flatten)]
    diagnostic: &'a Diagnostic,
    severity: Severity,
    category: Category,
    line: Option<usize>,
    column: Option<usize>,
}

impl<'a> DiagnosticDocument<'a> {
    fn new(found: &'a LocatedDiagnostic, sources: &SourceMap) -> DiagnosticDocument<'a> {
        let diagnostic = &found.diagnostic;
        let place = found.span.map(|span| sources.line_col(span.start));
        DiagnosticDocument {
            diagnostic,
            severity: diagnostic.severity(),
            category: diagnostic.code.category(),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
        }
    }
}

/// `line:column: `, or nothing if it is about the file as a whole.
fn place(found: &LocatedDiagnostic, sources: &SourceMap) -> String {
    match found.span {
        Some(span) => {
            let (line, column) = sources.line_col(span.start);
            format!("{line}:{column}: ")
        }
        None => String::new(),
    }
}

/// What is underlined: the first line of a span, which may be as long as the file.
fn label(found: &LocatedDiagnostic, span: Span, sources: &SourceMap) -> LabeledSpan {
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
    found: &'a LocatedDiagnostic,
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
struct RenderedReport<'a, H>(&'a H, &'a Report<'a>);

impl<H: ReportHandler> fmt::Display for RenderedReport<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.debug(self.1, f)
    }
}

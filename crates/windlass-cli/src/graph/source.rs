//! A graph file: read, loaded and checked.

use std::cmp::Reverse;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use windlass::graph::check::{Level, check, check_partial};
use windlass::graph::compile::{Plan, compile};
use windlass::graph::component::Registry;
use windlass::graph::diagnostic::{Diagnostic, Severity};
use windlass::graph::model::Graph;
use windlass::graph::source::{SourceMap, Span};
use windlass::graph::{Limits, Loaded};
use windlass::graph::{LoadOptions, Partial};

use super::report;
use crate::args::{Format, Source};
use crate::outcome::Error;
use crate::terminal::Terminal;

/// A file that was read, and perhaps loaded.
pub(crate) struct LoadedFile {
    /// The graph, if the file has the form of one.
    pub(crate) graph: Option<Graph>,
    /// What could be read of it otherwise.
    partial: Option<Box<Partial>>,
    pub(crate) findings: Findings,
}

/// What was found in a file.
pub(crate) struct Findings {
    /// The name of the file, for people.
    pub(crate) name: String,
    pub(crate) sources: SourceMap,
    /// What was found, errors first.
    pub(crate) found: Vec<LocatedDiagnostic>,
}

/// One finding, and where it is.
#[derive(Debug)]
pub(crate) struct LocatedDiagnostic {
    pub(crate) diagnostic: Diagnostic,
    /// None if it is about the file as a whole.
    pub(crate) span: Option<Span>,
}

/// A file whose graph is valid.
pub(crate) struct Valid {
    pub(crate) graph: Graph,
    pub(crate) sources: SourceMap,
    pub(crate) name: String,
}

/// The name of a file for people: `-` is standard input.
pub(crate) struct FileName<'a>(pub(crate) &'a Path);

/// Loads and checks a file of which types may be unknown. If it is not valid, says why, and returns
/// nothing.
pub(crate) fn valid(
    source: &Source,
    registry: &Registry,
    format: Format,
    terminal: &Terminal,
) -> Result<Option<Valid>, Error> {
    let mut opened = load(&source.file, &source.limits.limits())?;
    opened.check(registry, Level::Schema);
    opened.into_valid(format, terminal)
}

/// Loads a file: what is wrong with its form is among the findings.
pub(crate) fn load(file: &Path, limits: &Limits) -> Result<LoadedFile, Error> {
    let name = FileName(file).to_string();
    let bytes = read(file, limits.input_bytes).map_err(|source| Error::Read {
        file: name.clone(),
        source,
    })?;
    Ok(load_text(bytes, file, limits))
}

/// Loads a text: what is wrong with its form is among the findings.
pub(crate) fn load_text(bytes: Vec<u8>, file: &Path, limits: &Limits) -> LoadedFile {
    let name = FileName(file).to_string();
    let options = LoadOptions {
        limits: limits.clone(),
    };
    let (graph, partial, sources, found) = match windlass::graph::load(bytes, &options) {
        Ok(Loaded { graph, sources }) => (Some(graph), None, sources, Vec::new()),
        Err(errors) => {
            let found = errors
                .problems
                .into_iter()
                .map(|problem| LocatedDiagnostic {
                    diagnostic: problem.diagnostic,
                    span: problem.span,
                });
            (None, errors.partial, errors.sources, found.collect())
        }
    };
    let findings = Findings {
        name,
        sources,
        found,
    };
    LoadedFile {
        graph,
        partial,
        findings,
    }
}

/// Standard input can be read once.
pub(crate) fn stdin_once(files: &[PathBuf]) -> Result<(), Error> {
    let of_stdin = files.iter().filter(|file| is_stdin(file));
    match of_stdin.count() {
        0 | 1 => Ok(()),
        _ => Err(Error::StdinTwice),
    }
}

/// At most one byte more than the limit: enough to see that it is too much.
fn read(file: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    match is_stdin(file) {
        true => io::stdin().lock().take(most).read_to_end(&mut bytes)?,
        false => File::open(file)?.take(most).read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

impl LoadedFile {
    /// Checks what the graph means, as far as it could be read.
    pub(crate) fn check(&mut self, registry: &Registry, level: Level) {
        let found = match (&self.graph, &self.partial) {
            (Some(graph), _) => check(graph, registry, level),
            (None, Some(partial)) => check_partial(partial, registry, level),
            (None, None) => return,
        };
        let sources = &self.findings.sources;
        let found = found.into_iter().map(|diagnostic| LocatedDiagnostic {
            span: sources.span_of(&diagnostic.graph_path),
            diagnostic,
        });
        self.findings.found.extend(found);
        if self.partial.is_some() {
            // Mistakes of form and of meaning, in the order of the file.
            let start = |found: &LocatedDiagnostic| found.span.map_or(0, |span| span.start);
            self.findings
                .found
                .sort_by_key(|found| (Reverse(found.diagnostic.severity()), start(found)));
        }
    }

    /// The graph, if nothing is wrong with it; otherwise says what is.
    pub(crate) fn into_valid(
        self,
        format: Format,
        terminal: &Terminal,
    ) -> Result<Option<Valid>, Error> {
        let findings = self.findings;
        match self.graph {
            Some(graph) if !findings.has_errors() => {
                if format == Format::Text {
                    point_at_warnings(&findings, terminal);
                }
                Ok(Some(Valid {
                    graph,
                    sources: findings.sources,
                    name: findings.name,
                }))
            }
            _ => {
                report::refuse(&findings, format, terminal)?;
                Ok(None)
            }
        }
    }
}

fn point_at_warnings(findings: &Findings, terminal: &Terminal) {
    let warnings = findings.count(Severity::Warning);
    if warnings > 0 {
        let name = &findings.name;
        terminal.note(&format!(
            "note: {name} has {warnings} warnings: `windlass graph validate` shows them"
        ));
    }
}

impl Findings {
    pub(crate) fn count(&self, severity: Severity) -> usize {
        let severities = self.found.iter().map(|found| found.diagnostic.severity());
        severities.filter(|found| *found == severity).count()
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }
}

impl Valid {
    /// Compiles it, and leaves the graph with the plan.
    pub(crate) fn compile(self) -> Result<Plan, Error> {
        compile(self.graph).map_err(Error::Compile)
    }
}

impl fmt::Display for FileName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_stdin(self.0) {
            true => f.write_str("<stdin>"),
            false => write!(f, "{}", self.0.display()),
        }
    }
}

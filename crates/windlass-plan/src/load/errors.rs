//! Why a file could not be loaded.

use std::fmt;

use crate::check::Unread;
use crate::diagnostic::Diagnostic;
use crate::model::Graph;
use crate::source::{SourceMap, Span};

/// Why a file could not be loaded: everything that is wrong with it, not only the first thing.
#[derive(Debug, Clone)]
pub struct LoadErrors {
    /// What is wrong; never empty.
    pub problems: Vec<LoadProblem>,
    /// The text, as far as it could be read.
    pub sources: SourceMap,
    /// What could be read in spite of the problems; none if that says nothing about the rest.
    pub partial: Option<Box<Partial>>,
}

/// What could be read of a file that is wrong in form: for [`check_partial`](crate::check::check_partial), so that
/// mistakes of form and of meaning are reported together. It cannot be run.
#[derive(Debug, Clone)]
pub struct Partial {
    pub(crate) graph: Graph,
    pub(crate) unread: Unread,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadProblem {
    /// What it is.
    pub diagnostic: Diagnostic,
    /// Where it is; none if it is about the file as a whole.
    pub span: Option<Span>,
}

impl std::error::Error for LoadErrors {}

impl fmt::Display for LoadErrors {
    /// A line for each problem: `line:column: what`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, problem) in self.problems.iter().enumerate() {
            if nth > 0 {
                writeln!(f)?;
            }
            if let Some(span) = problem.span {
                let (line, column) = self.sources.line_col(span.start);
                write!(f, "{line}:{column}: ")?;
            }
            write!(f, "{}", problem.diagnostic)?;
        }
        Ok(())
    }
}

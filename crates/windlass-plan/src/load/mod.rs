//! From a file to a [`Graph`]: parse, substitute templates, expand subgraphs, then type and walk.
//!
//! All errors are collected. What a file means beyond its form is for [`crate::check`], which also
//! looks at what could be read of a file that is wrong in form ([`Partial`]).

mod component;
mod config;
mod edge;
mod errors;
mod expand;
mod lane;
mod loops;
mod root;
mod scalars;
mod template;
mod walk;

use std::collections::HashMap;

pub use errors::{LoadErrors, LoadProblem, Partial};

use crate::check::Unread;
use crate::diagnostic::{Code, Diagnostic};
use crate::limits::Limits;
use crate::model::Graph;
use crate::source::{SourceMap, Span, parse};
use walk::Walk;

/// How to load a file.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// How large it may be.
    pub limits: Limits,
}

/// A file that was loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The graph, expanded and with every default.
    pub graph: Graph,
    /// Where in the file each part of it is.
    pub sources: SourceMap,
}

/// Loads a graph from the text of a file.
///
/// # Errors
/// Everything that is wrong with its form: YAML, fields, types, names, limits, templates.
pub fn load(input: impl AsRef<[u8]>, options: &LoadOptions) -> Result<Loaded, LoadErrors> {
    load_bytes(input.as_ref(), &options.limits)
}

fn load_bytes(input: &[u8], limits: &Limits) -> Result<Loaded, LoadErrors> {
    if input.len() > limits.input_bytes {
        let message = format!("graph input size exceeds limit {}", limits.input_bytes);
        return Err(single(message, "", String::new(), None));
    }
    let text = match std::str::from_utf8(input) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            let valid = String::from_utf8_lossy(&input[..at]).into_owned();
            let message = format!("the text is not UTF-8 at byte {at}");
            let span = Span { start: at, end: at };
            return Err(single(message, "save the file as UTF-8", valid, Some(span)));
        }
    };
    let mut walk = Walk::new(limits);
    let (root, errors) = parse(text, limits);
    for error in errors {
        match error.path.is_empty() {
            true => walk.give_up_meaning(),
            false => walk.mark_unread(&error.path),
        }
        let diagnostic = Diagnostic::new(Code::GraphValidationError, error.path, error.message);
        walk.report(diagnostic.fix(error.fix), Some(error.span));
    }
    let graph = root.and_then(|root| root::graph(&mut walk, &root));
    let unread = walk.take_unread();
    let (problems, spans) = walk.finish();
    let sources = SourceMap::new(text.to_owned(), spans);
    match graph {
        Some(graph) if problems.is_empty() => Ok(Loaded { graph, sources }),
        graph => {
            let partial = graph.zip(unread).map(|(graph, unread)| Partial {
                graph,
                unread: Unread::new(unread),
            });
            Err(LoadErrors {
                problems,
                sources,
                partial: partial.map(Box::new),
            })
        }
    }
}

/// The values of a file that is no graph; what is wrong with it, and where.
pub fn values(text: &str, limits: &Limits) -> Result<crate::model::Config, (String, String)> {
    if text.trim().is_empty() {
        return Ok(crate::model::Config::new());
    }
    let mut walk = Walk::new(limits);
    let (root, errors) = parse(text, limits);
    let sources = SourceMap::new(text.to_owned(), HashMap::new());
    let place = |span: Option<Span>| match span.map(|span| sources.line_col(span.start)) {
        Some((line, column)) => format!("{line}:{column}"),
        None => String::new(),
    };
    if let Some(error) = errors.into_iter().next() {
        return Err((place(Some(error.span)), error.message));
    }
    let config = match &root {
        Some(root) => {
            let at = walk.at(String::new(), root);
            walk.config(&at)
        }
        None => crate::model::Config::new(),
    };
    match walk.finish().0.into_iter().next() {
        Some(problem) => Err((place(problem.span), problem.diagnostic.message)),
        None => Ok(config),
    }
}

fn single(message: String, fix: &str, text: String, span: Option<Span>) -> LoadErrors {
    let diagnostic = Diagnostic::new(Code::GraphValidationError, "", message).fix(fix);
    LoadErrors {
        problems: vec![LoadProblem { diagnostic, span }],
        sources: SourceMap::new(text, HashMap::new()),
        partial: None,
    }
}

//! The walk over the nodes of a file: takes fields, and collects what is wrong and where things
//! are.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::LoadProblem;
use crate::diagnostic::{Code, Diagnostic};
use crate::limits::Limits;
use crate::source::{Entry, Node, Span, Value};
use crate::suggest::did_you_mean;

/// Problems beyond this are only counted: a megabyte of nonsense must not become a gigabyte of
/// messages.
const MAX_PROBLEMS: usize = 1000;

/// How many known names are compared with an unknown one.
const MAX_SUGGESTED: usize = 256;

/// What a walk has found so far.
pub(super) struct Walk<'a> {
    pub(super) limits: &'a Limits,
    /// The schema version that the file says it is written in.
    pub(super) version: u64,
    problems: Vec<LoadProblem>,
    not_listed: usize,
    spans: HashMap<String, Span>,
    /// The paths of what could not be read.
    unread: HashSet<String>,
    /// So little could be read that what the rest means is not known.
    is_opaque: bool,
}

/// A node and its path.
pub(super) struct At<'n> {
    pub(super) path: String,
    pub(super) node: &'n Rc<Node>,
    /// Where a message about it points.
    pub(super) span: Span,
}

impl<'a> Walk<'a> {
    pub(super) fn new(limits: &'a Limits) -> Walk<'a> {
        Walk {
            limits,
            version: 1,
            problems: Vec::new(),
            not_listed: 0,
            spans: HashMap::new(),
            unread: HashSet::new(),
            is_opaque: false,
        }
    }

    /// Notes that the meaning of the file is not known: a limit was exceeded, or a template is
    /// wrong.
    pub(super) fn give_up_meaning(&mut self) {
        self.is_opaque = true;
    }

    /// Notes that what is at this path could not be read.
    pub(super) fn mark_unread(&mut self, path: impl Into<String>) {
        self.unread.insert(path.into());
    }

    /// What could not be read; none if so little could be read that nothing is known about the
    /// rest.
    pub(super) fn take_unread(&mut self) -> Option<HashSet<String>> {
        (!self.is_opaque).then(|| std::mem::take(&mut self.unread))
    }

    /// All problems and all places.
    pub(super) fn finish(mut self) -> (Vec<LoadProblem>, HashMap<String, Span>) {
        if self.not_listed > 0 {
            let message = format!("{} further problems are not listed", self.not_listed);
            self.problems.push(LoadProblem {
                diagnostic: Diagnostic::new(Code::GraphValidationError, "", message),
                span: None,
            });
        }
        (self.problems, self.spans)
    }

    pub(super) fn problem_count(&self) -> usize {
        self.problems.len() + self.not_listed
    }

    pub(super) fn report(&mut self, diagnostic: Diagnostic, span: Option<Span>) {
        match self.is_full() {
            true => self.not_listed += 1,
            false => self.problems.push(LoadProblem { diagnostic, span }),
        }
    }

    /// Whether no more problems are listed, so that it is pointless to look for them.
    pub(super) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    /// `did you mean ...?`, or else this.
    pub(super) fn suggest<'k>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'k str>,
        otherwise: impl FnOnce() -> String,
    ) -> String {
        let near = match self.is_full() {
            true => None,
            false => did_you_mean(name, known.into_iter().take(MAX_SUGGESTED)),
        };
        near.unwrap_or_else(otherwise)
    }

    /// Reports an error that has no code of its own.
    pub(super) fn error(
        &mut self,
        at: &At<'_>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.mark_unread(&at.path);
        let diagnostic = Diagnostic::new(Code::GraphValidationError, &at.path, message).fix(fix);
        self.report(diagnostic, Some(at.span));
    }

    /// Reports that something else was expected.
    pub(super) fn expected(&mut self, at: &At<'_>, what: &str, fix: &str) {
        let message = format!("expected {what}, found {}", at.node.what());
        self.error(at, message, fix);
    }

    /// Reports a limit that is exceeded.
    pub(super) fn over_limit(&mut self, at: &At<'_>, what: &str, limit: usize) {
        let message = format!("{what} exceeds limit {limit}");
        self.error(at, message, "make it smaller, or raise the limit");
    }

    /// Remembers where a path is.
    pub(super) fn at<'n>(&mut self, path: String, node: &'n Rc<Node>) -> At<'n> {
        self.at_span(path, node, node.span)
    }

    fn at_span<'n>(&mut self, path: String, node: &'n Rc<Node>, span: Span) -> At<'n> {
        self.spans.insert(path.clone(), span);
        At { path, node, span }
    }

    /// The fields of a map.
    pub(super) fn fields<'n>(&mut self, at: At<'n>) -> Option<Fields<'n>> {
        match &at.node.value {
            Value::Map(entries) => Some(Fields {
                entries,
                taken: vec![false; entries.len()],
                asked: Vec::new(),
                at,
            }),
            _ => {
                self.expected(&at, "a map", "");
                None
            }
        }
    }

    /// The entries of a map whose keys are the user's.
    pub(super) fn entries<'n>(&mut self, at: &At<'n>) -> Vec<(&'n Entry, At<'n>)> {
        let Value::Map(entries) = &at.node.value else {
            self.expected(at, "a map", "");
            return Vec::new();
        };
        entries
            .iter()
            .map(|entry| (entry, self.entry(&at.path, entry)))
            .collect()
    }

    /// The items of a list.
    pub(super) fn items<'n>(&mut self, at: &At<'n>) -> &'n [Rc<Node>] {
        match &at.node.value {
            Value::List(items) => items,
            _ => {
                self.expected(at, "a list", "begin each item with `- `");
                &[]
            }
        }
    }

    /// The value of an entry. A message about a list, a map or nothing points at the key.
    fn entry<'n>(&mut self, path: &str, entry: &'n Entry) -> At<'n> {
        let path = match path.is_empty() {
            true => entry.key.text.clone(),
            false => format!("{path}.{}", entry.key.text),
        };
        let value = &entry.value;
        let is_scalar = matches!(value.value, Value::Scalar(_)) && !value.is_null();
        let is_aliased = value.span.start < entry.key.span.start;
        let span = match (is_scalar, is_aliased) {
            (true, _) => value.span,
            (false, true) => entry.key.span,
            (false, false) => entry.key.span.to(value.span),
        };
        self.at_span(path, value, span)
    }
}

/// The fields of a map that are being taken, one by one.
pub(super) struct Fields<'n> {
    pub(super) at: At<'n>,
    entries: &'n [Entry],
    taken: Vec<bool>,
    asked: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// A field that may be left out, or left without a value.
    pub(super) fn get(&mut self, walk: &mut Walk<'_>, name: &'static str) -> Option<At<'n>> {
        self.asked.push(name);
        let place = self.entries.iter().position(|e| e.key.text == name)?;
        self.taken[place] = true;
        let entry = &self.entries[place];
        let at = walk.entry(&self.at.path, entry);
        (!entry.value.is_null()).then_some(at)
    }

    /// A field that has to be there.
    pub(super) fn need(&mut self, walk: &mut Walk<'_>, name: &'static str) -> Option<At<'n>> {
        let field = self.get(walk, name);
        if field.is_none() {
            let message = format!("missing field {}.{name}", self.context());
            walk.mark_unread(match self.at.path.as_str() {
                "" => name.to_owned(),
                path => format!("{path}.{name}"),
            });
            let missing = Diagnostic::new(Code::GraphValidationError, &self.at.path, message);
            walk.report(missing.fix(format!("add `{name}`")), Some(self.at.span));
        }
        field
    }

    /// Reports the fields that were not read: they are not known.
    pub(super) fn finish(self, walk: &mut Walk<'_>) {
        for (entry, taken) in self.entries.iter().zip(&self.taken) {
            if *taken {
                continue;
            }
            let at = walk.entry(&self.at.path, entry);
            let message = format!("unexpected field {}.{}", self.context(), entry.key.text);
            let known = || format!("known are: {}", self.asked.join(", "));
            let fix = walk.suggest(&entry.key.text, self.asked.iter().copied(), known);
            let diagnostic = Diagnostic::new(Code::GraphValidationError, at.path, message).fix(fix);
            walk.report(diagnostic, Some(entry.key.span));
        }
    }

    fn context(&self) -> &str {
        match self.at.path.as_str() {
            "" => "root",
            path => path,
        }
    }
}

//! Where in a file each part of a graph is written.

use std::collections::HashMap;

use super::Span;

/// Where in a file each part of a graph is written: from a diagnostic's `graph_path` to a place in
/// the text.
///
/// Paths have the indices of the expanded lists. What came from a subgraph or a template leads to
/// its text there.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    text: Box<str>,
    /// Where each line begins.
    lines: Box<[usize]>,
    spans: HashMap<String, Span>,
}

impl SourceMap {
    pub(crate) fn new(text: String, spans: HashMap<String, Span>) -> SourceMap {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(after_breaks).collect();
        SourceMap {
            text: text.into(),
            lines,
            spans,
        }
    }

    /// The text of the file.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where this path is written; if it is not, the nearest path around it that is.
    pub fn span_of(&self, path: &str) -> Option<Span> {
        let mut path = path;
        loop {
            if let Some(&span) = self.spans.get(path) {
                return Some(span);
            }
            if path.is_empty() {
                return None;
            }
            // The last `.name` or `[index]` goes; around everything is the root, which has no name.
            path = &path[..path.rfind(['.', '[']).unwrap_or(0)];
        }
    }

    /// The line and the column of a byte of the text, both from 1; columns count characters.
    pub fn line_col(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|&start| start <= offset).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = self.text.get(start..end).unwrap_or_default();
        (line, before.chars().count() + 1)
    }
}

//! A stretch of text.

/// A stretch of a file's text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Where it begins.
    pub start: usize,
    /// Where it ends; the byte there is no longer part of it.
    pub end: usize,
}

impl Span {
    /// From the beginning of this to the end of another.
    pub(crate) fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end.max(self.end),
        }
    }
}

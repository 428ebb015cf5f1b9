//! Comparing a replay with its recording.

use std::fmt;

use crate::digest::Digest;
use crate::format::Format;
use crate::reader::Recording;
use crate::writer::to_text;

/// The first line at which a replay did something else than was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The number of the line in the recording, from 1; the header is line 1.
    pub line: usize,
    /// What was recorded, as a line; empty if nothing more was recorded.
    pub recorded: String,
    /// What happened instead, as a line; empty if nothing more happened.
    pub replayed: String,
    /// True if the line, or one before it, was edited after it was recorded. The replay did what
    /// the line says now.
    pub is_edited: bool,
}

impl Difference {
    /// Makes a difference that a front end found by itself.
    pub fn new(line: usize, recorded: String, replayed: String) -> Difference {
        Difference {
            line,
            recorded,
            replayed,
            is_edited: false,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_nothing = |line: &str| match line {
            "" => "nothing".to_owned(),
            line => line.to_owned(),
        };
        let (line, recorded) = (self.line, or_nothing(&self.recorded));
        if self.is_edited {
            return write!(
                f,
                "line {line}, which was edited after it was recorded, or one before it was: {recorded}"
            );
        }
        let replayed = or_nothing(&self.replayed);
        write!(
            f,
            "line {line}:\n  recorded: {recorded}\n  replayed: {replayed}"
        )
    }
}

/// A recording with which a replay is compared, line by line.
#[derive(Debug)]
pub struct Comparison<F: Format> {
    lines: Vec<F::Line>,
    next: usize,
    edited_line: Option<usize>,
    digest: Digest,
}

impl<F: Format> Comparison<F> {
    /// Compares with all lines of a recording.
    pub fn new(recording: &Recording<F>) -> Comparison<F> {
        Comparison {
            lines: recording.lines.clone(),
            next: 0,
            edited_line: recording.edited_line(),
            digest: Digest::default(),
        }
    }

    /// Returns the lines that are still to come.
    pub fn rest(&self) -> &[F::Line] {
        &self.lines[self.next..]
    }

    /// Returns the number of the line that comes next, from 1; the header is line 1.
    pub fn line(&self) -> usize {
        self.next + 2
    }

    /// Returns how many lines the recording has, with its header.
    pub fn lines(&self) -> usize {
        self.lines.len() + 1
    }

    /// Returns the hash of all that happened in the replay.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Compares what happened with the next line.
    ///
    /// # Errors
    /// If the recording says something else, or the line was edited.
    pub fn check(&mut self, happened: &F::Line) -> Result<(), Difference> {
        let text = text(happened);
        self.digest.bytes(text.as_bytes());
        let (line, recorded) = (self.line(), self.lines.get(self.next));
        // Texts are equal also where values are not: a NaN, and Rust values of the same type.
        let is_same = recorded.is_some_and(|it| it == happened || self::text(it) == text);
        let is_edited = is_same && self.edited_line == Some(line);
        if is_same && !is_edited {
            self.next += 1;
            return Ok(());
        }
        Err(Difference {
            line,
            recorded: recorded.map(self::text).unwrap_or_default(),
            replayed: text,
            is_edited,
        })
    }

    /// Checks that nothing was still to come.
    ///
    /// # Errors
    /// If there are lines of which nothing happened.
    pub fn finish(&self) -> Result<(), Difference> {
        match self.rest().first() {
            None => Ok(()),
            Some(line) => Err(Difference::new(self.line(), text(line), String::new())),
        }
    }
}

fn text<T: serde::Serialize + fmt::Debug>(line: &T) -> String {
    to_text(line, "").unwrap_or_else(|_| format!("{line:?}"))
}

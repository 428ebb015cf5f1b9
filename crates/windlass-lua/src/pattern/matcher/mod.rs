//! The matcher: walks a pattern and a text, and remembers where it could go another way.
//!
//! It reads the pattern as it comes to it, as Lua does: what is wrong in a part that is never
//! reached is never found. Instead of calling itself it keeps a list of [`Retry`]s, so a pattern
//! cannot use up the stack.

mod item;

use super::bytes::{ByteSet, find_byte, find_text, is_at};
use super::steps::{PatternProblem, Steps};

/// Captures that a pattern can have, as in Lua.
const MAX_CAPTURES: usize = 32;

/// Retries at a time. Lua calls itself for each, 200 deep, of which the first call is for none.
const MAX_RETRIES: usize = 199;

/// Sets that are remembered with their members; a pattern with more has to read the others again
/// and again.
const MAX_KNOWN_SETS: usize = 16;

/// What a capture has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// It has begun.
    Open,
    /// Only its place: `()`.
    Position,
    Length(usize),
}

#[derive(Debug, Clone, Copy)]
struct Capture {
    start: usize,
    extent: Extent,
}

/// What a capture gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptureValue<'a> {
    Text(&'a [u8]),
    /// A place, counted from 1.
    Position(usize),
}

/// What stands for one byte.
#[derive(Debug, Clone, Copy)]
enum Single {
    Any,
    Byte(u8),
    Set(ByteSet),
}

impl Single {
    #[inline]
    fn fits(&self, byte: u8) -> bool {
        match self {
            Single::Any => true,
            Single::Byte(wanted) => *wanted == byte,
            Single::Set(set) => set.contains(byte),
        }
    }
}

/// What the rest of a pattern cannot do without at its first place, as far as that is plain to see.
#[derive(Debug, Clone, Copy)]
enum Lookahead {
    Anything,
    Byte(u8),
    End,
}

/// Where the matcher is, in the text and in the pattern.
#[derive(Debug, Clone, Copy)]
struct Position {
    text: usize,
    pattern: usize,
}

/// What to do if the way that was taken leads nowhere.
#[derive(Debug, Clone, Copy)]
enum Retry {
    /// Forget the last capture.
    Open,
    /// Open this capture again.
    Close(usize),
    /// Do without what `?` says.
    Without(Position),
    /// Give back a byte: what `*` and `+` do.
    Shorter {
        least: usize,
        tried: usize,
        next: usize,
        awaited: Lookahead,
    },
    /// Take one more byte: what `-` does.
    Longer {
        tried: usize,
        single: Single,
        next: usize,
        awaited: Lookahead,
    },
}

/// What came of a turn.
enum MatchProgress {
    On(Position),
    Failed,
    /// The match ends here.
    Matched(usize),
}

/// A set that was read: where it begins and ends in the pattern, and its members.
#[derive(Debug, Clone, Copy)]
struct ParsedSet {
    open: usize,
    end: usize,
    members: ByteSet,
}

/// A match: where it begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A pattern on its way through a text.
pub(super) struct Matcher<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    /// Matches at the first place that is tried, or not at all.
    anchored: bool,
    /// The pattern is a text that stands for itself.
    literal: bool,
    steps: Steps,
    captures: [Capture; MAX_CAPTURES],
    level: usize,
    retries: Vec<Retry>,
    sets: Vec<ParsedSet>,
}

/// Whether a pattern stands for itself in `find`, where a `)` does too.
pub(super) fn is_plain(pattern: &[u8]) -> bool {
    !pattern.iter().any(|byte| b"^$*+?.([%-".contains(byte))
}

impl<'a> Matcher<'a> {
    /// A `^` at the beginning of the pattern means the beginning of the text.
    pub(super) fn new(subject: &'a [u8], pattern: &'a [u8], steps: Steps) -> Matcher<'a> {
        match pattern.strip_prefix(b"^") {
            Some(rest) => Matcher {
                anchored: true,
                literal: false,
                ..Matcher::unanchored(subject, rest, steps)
            },
            None => Matcher::unanchored(subject, pattern, steps),
        }
    }

    /// A `^` at the beginning of the pattern means itself.
    pub(super) fn unanchored(subject: &'a [u8], pattern: &'a [u8], steps: Steps) -> Matcher<'a> {
        let nothing = Capture {
            start: 0,
            extent: Extent::Open,
        };
        Matcher {
            subject,
            pattern,
            anchored: false,
            literal: is_plain(pattern) && !pattern.contains(&b')'),
            steps,
            captures: [nothing; MAX_CAPTURES],
            level: 0,
            retries: Vec::new(),
            sets: Vec::new(),
        }
    }

    pub(super) fn is_anchored(&self) -> bool {
        self.anchored
    }

    pub(super) fn steps(&mut self) -> &mut Steps {
        &mut self.steps
    }

    /// The first match at or after a place; not one that ends at `before`, where the match before
    /// it has ended.
    pub(super) fn search(
        &mut self,
        from: usize,
        before: Option<usize>,
    ) -> Result<Option<Match>, PatternProblem> {
        if self.literal && !self.pattern.is_empty() {
            let start = find_text(self.subject, self.pattern, from);
            let length = self.pattern.len();
            return Ok(start.map(|start| Match {
                start,
                end: start + length,
            }));
        }
        let awaited = self.awaited(0);
        let mut start = from;
        while start <= self.subject.len() {
            if !self.anchored {
                let Some(promising) = self.next_promising(start, awaited) else {
                    return Ok(None);
                };
                start = promising;
            }
            match self.match_at(start)? {
                Some(end) if before != Some(end) => return Ok(Some(Match { start, end })),
                _ if self.anchored => return Ok(None),
                _ => start += 1,
            }
        }
        Ok(None)
    }

    /// The first place from here where the pattern may match. This passes over the text once, so it
    /// is free.
    fn next_promising(&self, from: usize, awaited: Lookahead) -> Option<usize> {
        match awaited {
            Lookahead::Anything => Some(from),
            Lookahead::Byte(byte) => find_byte(&self.subject[from..], byte).map(|at| from + at),
            Lookahead::End => Some(self.subject.len()),
        }
    }

    /// Where the match ends that begins here.
    fn match_at(&mut self, start: usize) -> Result<Option<usize>, PatternProblem> {
        self.level = 0;
        self.retries.clear();
        let mut place = Position {
            text: start,
            pattern: 0,
        };
        loop {
            self.steps.spend(1)?;
            place = match self.turn(place)? {
                MatchProgress::On(next) => next,
                MatchProgress::Matched(end) => return Ok(Some(end)),
                MatchProgress::Failed => match self.retry()? {
                    Some(other) => other,
                    None => return Ok(None),
                },
            };
        }
    }

    fn turn(&mut self, here: Position) -> Result<MatchProgress, PatternProblem> {
        let Some(&first) = self.pattern.get(here.pattern) else {
            return Ok(MatchProgress::Matched(here.text));
        };
        let second = self.pattern.get(here.pattern + 1).copied();
        match (first, second) {
            (b'(', _) => self.open_capture(here, second == Some(b')')),
            (b')', _) => self.close_capture(here),
            (b'$', None) if here.text == self.subject.len() => {
                Ok(MatchProgress::Matched(here.text))
            }
            (b'$', None) => Ok(MatchProgress::Failed),
            (b'%', Some(b'b')) => self.balanced(here),
            (b'%', Some(b'f')) => self.frontier(here),
            (b'%', Some(digit @ b'0'..=b'9')) => self.captured_again(here, digit),
            _ => self.single_item(here),
        }
    }

    /// Another way, if there is one left.
    fn retry(&mut self) -> Result<Option<Position>, PatternProblem> {
        while let Some(retry) = self.retries.pop() {
            self.steps.spend(1)?;
            let other = match retry {
                Retry::Open => {
                    self.level -= 1;
                    None
                }
                Retry::Close(index) => {
                    self.captures[index].extent = Extent::Open;
                    None
                }
                Retry::Without(place) => Some(place),
                Retry::Shorter { least, tried, .. } if tried == least => None,
                Retry::Shorter {
                    least,
                    tried,
                    next,
                    awaited,
                } => self.take_most(least, tried - 1, next, awaited)?,
                Retry::Longer {
                    tried,
                    single,
                    next,
                    awaited,
                } => match self.subject.get(tried) {
                    Some(&byte) if single.fits(byte) => {
                        self.take_least(tried + 1, single, next, awaited)?
                    }
                    _ => None,
                },
            };
            if other.is_some() {
                return Ok(other);
            }
        }
        Ok(None)
    }

    fn remember(&mut self, retry: Retry) -> Result<(), PatternProblem> {
        self.check_depth()?;
        self.retries.push(retry);
        Ok(())
    }

    fn check_depth(&self) -> Result<(), PatternProblem> {
        match self.retries.len() < MAX_RETRIES {
            true => Ok(()),
            false => Err("pattern too complex".into()),
        }
    }

    // ---- captures ----

    fn open_capture(
        &mut self,
        here: Position,
        only_place: bool,
    ) -> Result<MatchProgress, PatternProblem> {
        let (extent, length) = match only_place {
            true => (Extent::Position, 2),
            false => (Extent::Open, 1),
        };
        let Some(capture) = self.captures.get_mut(self.level) else {
            return Err("too many captures".into());
        };
        *capture = Capture {
            start: here.text,
            extent,
        };
        self.level += 1;
        self.remember(Retry::Open)?;
        Ok(on(here.text, here.pattern + length))
    }

    fn close_capture(&mut self, here: Position) -> Result<MatchProgress, PatternProblem> {
        let open = |capture: &Capture| capture.extent == Extent::Open;
        let Some(index) = self.captures[..self.level].iter().rposition(open) else {
            return Err("invalid pattern capture".into());
        };
        let capture = &mut self.captures[index];
        capture.extent = Extent::Length(here.text - capture.start);
        self.remember(Retry::Close(index))?;
        Ok(on(here.text, here.pattern + 1))
    }

    /// `%1`: what a capture has got, once more.
    fn captured_again(
        &mut self,
        here: Position,
        digit: u8,
    ) -> Result<MatchProgress, PatternProblem> {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = index.and_then(|index| self.captures[..self.level].get(index));
        let Some(Capture { start, extent }) = capture.copied() else {
            return Err(invalid_index(digit));
        };
        let length = match extent {
            Extent::Open => return Err(invalid_index(digit)),
            // A place is no text: it is nowhere.
            Extent::Position => return Ok(MatchProgress::Failed),
            Extent::Length(length) => length,
        };
        let wanted = &self.subject[start..start + length];
        match is_at(self.subject, wanted, here.text, &mut self.steps)? {
            true => Ok(on(here.text + length, here.pattern + 2)),
            false => Ok(MatchProgress::Failed),
        }
    }

    /// The text of a match.
    pub(super) fn text(&self, found: Match) -> &'a [u8] {
        &self.subject[found.start..found.end]
    }

    /// How many captures the last match has.
    pub(super) fn captures(&self) -> usize {
        self.level
    }

    /// One of the captures of the last match.
    pub(super) fn capture(&self, index: usize) -> Result<CaptureValue<'a>, PatternProblem> {
        let Capture { start, extent } = self.captures[index];
        match extent {
            Extent::Open => Err("unfinished capture".into()),
            Extent::Position => Ok(CaptureValue::Position(start + 1)),
            Extent::Length(length) => Ok(CaptureValue::Text(&self.subject[start..start + length])),
        }
    }
}

fn on(text: usize, pattern: usize) -> MatchProgress {
    MatchProgress::On(Position { text, pattern })
}

fn invalid_index(digit: u8) -> PatternProblem {
    let index = i32::from(digit) - i32::from(b'0');
    format!("invalid capture index %{index}").into()
}

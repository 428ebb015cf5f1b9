//! The items of a pattern that stand for bytes: single ones, repeated ones, `%b` and `%f`.

use super::super::bytes::{BYTES_PER_STEP, ByteSet, class, find_byte};
use super::super::steps::PatternProblem;
use super::{
    Lookahead, MAX_KNOWN_SETS, MatchProgress, Matcher, ParsedSet, Position, Retry, Single, on,
};

impl Matcher<'_> {
    /// A single byte, and the `?`, `*`, `+` or `-` after it.
    pub(super) fn single_item(&mut self, here: Position) -> Result<MatchProgress, PatternProblem> {
        let Position { text, pattern } = here;
        let (single, after) = self.single(pattern)?;
        let repeated = self.pattern.get(after).copied();
        let fits = self
            .subject
            .get(text)
            .is_some_and(|&byte| single.fits(byte));
        let next = after + 1;
        let taken = match (repeated, fits) {
            (Some(b'?' | b'*' | b'-'), false) => return Ok(on(text, next)),
            (_, false) => return Ok(MatchProgress::Failed),
            (Some(b'?'), true) => {
                self.remember(Retry::Without(Position {
                    text,
                    pattern: next,
                }))?;
                return Ok(on(text + 1, next));
            }
            (Some(b'*'), true) => self.most(text, single, next)?,
            (Some(b'+'), true) => self.most(text + 1, single, next)?,
            (Some(b'-'), true) => {
                let awaited = self.awaited(next);
                self.take_least(text, single, next, awaited)?
            }
            (_, true) => return Ok(on(text + 1, after)),
        };
        Ok(taken.map_or(MatchProgress::Failed, MatchProgress::On))
    }

    /// As many as there are, or a few less.
    fn most(
        &mut self,
        least: usize,
        single: Single,
        next: usize,
    ) -> Result<Option<Position>, PatternProblem> {
        let rest = &self.subject[least..];
        let count = match single {
            Single::Any => rest.len(),
            _ => {
                let end = rest.iter().position(|&byte| !single.fits(byte));
                let count = end.unwrap_or(rest.len());
                self.steps.spend(count / BYTES_PER_STEP)?;
                count
            }
        };
        let awaited = self.awaited(next);
        self.take_most(least, least + count, next, awaited)
    }

    /// The last place between these where the rest may match.
    pub(super) fn take_most(
        &mut self,
        least: usize,
        most: usize,
        next: usize,
        awaited: Lookahead,
    ) -> Result<Option<Position>, PatternProblem> {
        // Also where it fails at once: Lua sees how deep it is before it looks.
        self.check_depth()?;
        let length = self.subject.len();
        let place = match awaited {
            Lookahead::Anything => Some(most),
            Lookahead::End => (most == length).then_some(most),
            Lookahead::Byte(byte) => {
                let between = &self.subject[least..length.min(most + 1)];
                let found = between.iter().rposition(|&there| there == byte);
                let passed = between.len() - found.unwrap_or(0);
                self.steps.spend(passed / BYTES_PER_STEP)?;
                found.map(|at| least + at)
            }
        };
        let Some(text) = place else { return Ok(None) };
        self.remember(Retry::Shorter {
            least,
            tried: text,
            next,
            awaited,
        })?;
        Ok(Some(Position {
            text,
            pattern: next,
        }))
    }

    /// The first place from here, over what fits, where the rest may match.
    pub(super) fn take_least(
        &mut self,
        from: usize,
        single: Single,
        next: usize,
        awaited: Lookahead,
    ) -> Result<Option<Position>, PatternProblem> {
        self.check_depth()?;
        let rest = &self.subject[from..];
        let (skipped, possible) = match (awaited, single) {
            (Lookahead::Anything, _) => (0, true),
            (Lookahead::End, Single::Any) => (rest.len(), true),
            (Lookahead::End, _) => {
                let stop = rest.iter().position(|&byte| !single.fits(byte));
                (stop.unwrap_or(rest.len()), stop.is_none())
            }
            (Lookahead::Byte(wanted), Single::Any) => {
                let stop = find_byte(rest, wanted);
                (stop.unwrap_or(rest.len()), stop.is_some())
            }
            (Lookahead::Byte(wanted), _) => {
                let stop = rest
                    .iter()
                    .position(|&byte| byte == wanted || !single.fits(byte));
                let possible = stop.is_some_and(|stop| rest[stop] == wanted);
                (stop.unwrap_or(rest.len()), possible)
            }
        };
        self.steps.spend(skipped / BYTES_PER_STEP)?;
        if !possible {
            return Ok(None);
        }
        let text = from + skipped;
        self.remember(Retry::Longer {
            tried: text,
            single,
            next,
            awaited,
        })?;
        Ok(Some(Position {
            text,
            pattern: next,
        }))
    }

    /// What the pattern needs from this place on. Says nothing of what could be an error.
    pub(super) fn awaited(&self, at: usize) -> Lookahead {
        let second = self.pattern.get(at + 1).copied();
        let (byte, length) = match (self.pattern.get(at), second) {
            (Some(b'$'), None) => return Lookahead::End,
            (Some(b'%'), Some(escaped)) if escaped.is_ascii_punctuation() => (escaped, 2),
            (None | Some(b'(' | b')' | b'%' | b'.' | b'['), _) => return Lookahead::Anything,
            (Some(&byte), _) => (byte, 1),
        };
        match self.pattern.get(at + length) {
            Some(b'?' | b'*' | b'-') => Lookahead::Anything,
            _ => Lookahead::Byte(byte),
        }
    }

    /// What stands for one byte here, and where it ends.
    fn single(&mut self, at: usize) -> Result<(Single, usize), PatternProblem> {
        match (self.pattern[at], self.pattern.get(at + 1)) {
            (b'.', _) => Ok((Single::Any, at + 1)),
            (b'%', Some(&letter)) => {
                let single = class(letter).map_or(Single::Byte(letter), Single::Set);
                Ok((single, at + 2))
            }
            (b'%', None) => Err("malformed pattern (ends with '%')".into()),
            (b'[', _) => {
                let set = self.set(at)?;
                Ok((Single::Set(set.members), set.end))
            }
            (byte, _) => Ok((Single::Byte(byte), at + 1)),
        }
    }

    /// The set that begins here. It is read once, if it is one of the first.
    fn set(&mut self, open: usize) -> Result<ParsedSet, PatternProblem> {
        if let Some(known) = self.sets.iter().find(|known| known.open == open) {
            return Ok(*known);
        }
        let close = self.close_of_set(open)?;
        self.steps.spend(close - open)?;
        let set = ParsedSet {
            open,
            end: close + 1,
            members: members(&self.pattern[open + 1..=close]),
        };
        if self.sets.len() < MAX_KNOWN_SETS {
            self.sets.push(set);
        }
        Ok(set)
    }

    /// Where the `]` of a set is. One that comes first is a member.
    fn close_of_set(&self, open: usize) -> Result<usize, PatternProblem> {
        let mut at = open + 1;
        if self.pattern.get(at) == Some(&b'^') {
            at += 1;
        }
        loop {
            at += match self.pattern.get(at) {
                None => return Err("malformed pattern (missing ']')".into()),
                Some(b'%') => 2,
                Some(_) => 1,
            };
            if self.pattern.get(at) == Some(&b']') {
                return Ok(at);
            }
        }
    }

    /// `%bxy`: from an x to the y that belongs to it.
    pub(super) fn balanced(&mut self, here: Position) -> Result<MatchProgress, PatternProblem> {
        let arguments = self.pattern.get(here.pattern + 2..here.pattern + 4);
        let Some(&[open, close]) = arguments else {
            return Err("malformed pattern (missing arguments to '%b')".into());
        };
        let Some((first, rest)) = self.subject[here.text..].split_first() else {
            return Ok(MatchProgress::Failed);
        };
        if *first != open {
            return Ok(MatchProgress::Failed);
        }
        let mut depth = 1;
        let end = rest.iter().position(|&byte| {
            // In this order: both can be the same.
            if byte == close {
                depth -= 1;
            } else if byte == open {
                depth += 1;
            }
            depth == 0
        });
        self.steps
            .spend(end.unwrap_or(rest.len()) / BYTES_PER_STEP)?;
        match end {
            Some(end) => Ok(on(here.text + end + 2, here.pattern + 4)),
            None => Ok(MatchProgress::Failed),
        }
    }

    /// `%f[set]`: between a byte that is not in the set and one that is. Around the text there are
    /// zeros.
    pub(super) fn frontier(&mut self, here: Position) -> Result<MatchProgress, PatternProblem> {
        let open = here.pattern + 2;
        if self.pattern.get(open) != Some(&b'[') {
            return Err("missing '[' after '%f' in pattern".into());
        }
        let ParsedSet { end, members, .. } = self.set(open)?;
        let byte_at = |at: usize| self.subject.get(at).copied().unwrap_or(0);
        let before = here.text.checked_sub(1).map_or(0, byte_at);
        match !members.contains(before) && members.contains(byte_at(here.text)) {
            true => Ok(on(here.text, end)),
            false => Ok(MatchProgress::Failed),
        }
    }
}

/// The members of a set: of what is between its brackets, with the `]` at its end.
///
/// That may be read: of `[x-%%]` the `x-%` is a range and the `%]` is a `]`, though the set ends
/// with it.
fn members(text: &[u8]) -> ByteSet {
    let close = text.len() - 1;
    let negated = text[0] == b'^';
    let mut set = ByteSet::EMPTY;
    let mut at = usize::from(negated);
    while at < close {
        let (byte, after) = (text[at], text[at + 1]);
        at += match byte {
            b'%' => {
                match class(after) {
                    Some(members) => set.insert_all(members),
                    None => set.insert(after),
                }
                2
            }
            _ if after == b'-' && at + 2 < close => {
                set.insert_range(byte, text[at + 2]);
                3
            }
            _ => {
                set.insert(byte);
                1
            }
        };
    }
    match negated {
        true => set.complement(),
        false => set,
    }
}

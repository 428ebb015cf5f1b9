//! Sets of bytes, and the search for bytes.

use memchr::memmem;

use super::steps::{PatternProblem, Steps};

/// How many bytes a tight loop passes for one step: it is that much faster than a turn of the
/// matcher.
pub(super) const BYTES_PER_STEP: usize = 8;

/// A set of bytes: one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(super) const EMPTY: ByteSet = ByteSet([0; 4]);

    #[inline]
    pub(super) const fn contains(&self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] >> (byte & 63) & 1 == 1
    }

    pub(super) const fn insert(&mut self, byte: u8) {
        self.0[(byte >> 6) as usize] |= 1 << (byte & 63);
    }

    /// Both ends are members; none is if they are the wrong way round.
    pub(super) fn insert_range(&mut self, low: u8, high: u8) {
        for byte in low..=high {
            self.insert(byte);
        }
    }

    pub(super) fn insert_all(&mut self, other: ByteSet) {
        for (word, more) in self.0.iter_mut().zip(other.0) {
            *word |= more;
        }
    }

    pub(super) fn complement(self) -> ByteSet {
        ByteSet(self.0.map(|word| !word))
    }

    /// The members of a class, whose letter is a small one.
    const fn of_class(letter: u8) -> ByteSet {
        let mut set = ByteSet::EMPTY;
        let mut byte = 0;
        loop {
            if is_in_class(letter, byte) {
                set.insert(byte);
            }
            if byte == u8::MAX {
                return set;
            }
            byte += 1;
        }
    }
}

/// By the rules of the C locale, so that a script does not depend on where it runs.
const fn is_in_class(letter: u8, byte: u8) -> bool {
    match letter {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        // C has the vertical tab among them, Rust has not.
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        // The manual no longer has it, but Lua still does.
        b'z' => byte == 0,
        _ => false,
    }
}

/// What `%` and this letter stand for; None if for the letter itself.
pub(super) fn class(letter: u8) -> Option<ByteSet> {
    const ALPHABETIC: ByteSet = ByteSet::of_class(b'a');
    const CONTROL: ByteSet = ByteSet::of_class(b'c');
    const DIGIT: ByteSet = ByteSet::of_class(b'd');
    const GRAPHIC: ByteSet = ByteSet::of_class(b'g');
    const LOWERCASE: ByteSet = ByteSet::of_class(b'l');
    const PUNCTUATION: ByteSet = ByteSet::of_class(b'p');
    const SPACE: ByteSet = ByteSet::of_class(b's');
    const UPPERCASE: ByteSet = ByteSet::of_class(b'u');
    const ALPHANUMERIC: ByteSet = ByteSet::of_class(b'w');
    const HEXADECIMAL: ByteSet = ByteSet::of_class(b'x');
    const ZERO: ByteSet = ByteSet::of_class(b'z');
    let set = match letter.to_ascii_lowercase() {
        b'a' => ALPHABETIC,
        b'c' => CONTROL,
        b'd' => DIGIT,
        b'g' => GRAPHIC,
        b'l' => LOWERCASE,
        b'p' => PUNCTUATION,
        b's' => SPACE,
        b'u' => UPPERCASE,
        b'w' => ALPHANUMERIC,
        b'x' => HEXADECIMAL,
        b'z' => ZERO,
        _ => return None,
    };
    match letter.is_ascii_uppercase() {
        true => Some(set.complement()),
        false => Some(set),
    }
}

/// The first place of a byte.
pub(super) fn find_byte(text: &[u8], byte: u8) -> Option<usize> {
    memchr::memchr(byte, text)
}

/// The first place of a text in another, at or after `from`.
///
/// Takes time in proportion to both texts, whatever they are, so it costs no steps. Comparing at
/// each place would take the square of that where a long text nearly fits everywhere.
pub(super) fn find_text(text: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let at = memmem::find(text.get(from..)?, wanted)?;
    Some(from + at)
}

/// Whether a text is at this place of another. Costs as much as is equal.
pub(super) fn is_at(
    text: &[u8],
    wanted: &[u8],
    at: usize,
    steps: &mut Steps,
) -> Result<bool, PatternProblem> {
    const BLOCK: usize = 64;
    let Some(there) = text.get(at..).and_then(|rest| rest.get(..wanted.len())) else {
        return Ok(false);
    };
    steps.spend(1)?;
    for (block, other) in wanted.chunks(BLOCK).zip(there.chunks(BLOCK)) {
        if block != other {
            return Ok(false);
        }
        steps.spend(1)?;
    }
    Ok(true)
}

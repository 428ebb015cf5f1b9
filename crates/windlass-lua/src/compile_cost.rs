//! How long a text takes Lua's compiler.
//!
//! The compiler is C and cannot be left. It keeps the jumps of `and`, `or`, `elseif`, `goto` and
//! `break` in lists that it walks from the start for each new one, so a chain of them takes time that
//! grows with the square of its length: 13,000 take 0.3 s, a megabyte of them minutes. Everything else
//! takes time in proportion to the text. So what a script makes up itself is bounded in bytes and in
//! such words.

/// Words that are compiled to a jump which is linked to others of its kind.
const JUMPS: [&[u8]; 5] = [b"and", b"or", b"elseif", b"goto", b"break"];

/// Counts the jumps of a text, outside of strings and comments.
pub(crate) fn jumps(text: &[u8]) -> usize {
    let mut jumps = 0;
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = match first {
            b'-' if after.first() == Some(&b'-') => skip_comment(&after[1..]),
            b'[' => skip_long(rest).unwrap_or(after),
            b'"' | b'\'' => skip_quoted(after, first),
            _ if is_word(first) => {
                let end = rest.iter().position(|byte| !is_word(*byte));
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                jumps += usize::from(JUMPS.contains(&word));
                after
            }
            _ => after,
        };
    }
    jumps
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What is behind a comment, whose dashes are gone already.
fn skip_comment(text: &[u8]) -> &[u8] {
    skip_long(text).unwrap_or_else(|| {
        let end = text.iter().position(|byte| *byte == b'\n');
        &text[end.unwrap_or(text.len())..]
    })
}

/// What is behind the long bracket that the text begins with, if it does.
fn skip_long(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"[")?;
    let level = inside.iter().take_while(|byte| **byte == b'=').count();
    let mut rest = inside[level..].strip_prefix(b"[")?;
    while let Some(at) = rest.iter().position(|byte| *byte == b']') {
        rest = &rest[at + 1..];
        let closing = rest.iter().take_while(|byte| **byte == b'=').count();
        if closing == level && rest.get(closing) == Some(&b']') {
            return Some(&rest[closing + 1..]);
        }
    }
    // It does not end: no word follows.
    Some(&[])
}

/// What is behind a string that ends with `quote`, or with its line.
fn skip_quoted(text: &[u8], quote: u8) -> &[u8] {
    let mut bytes = text.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match *byte {
            b'\\' => drop(bytes.next()),
            b'\n' => return &text[at..],
            byte if byte == quote => return &text[at + 1..],
            _ => {}
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::jumps;

    #[test]
    fn words_are_counted_outside_of_strings_and_comments() {
        assert_eq!(jumps(b"return a and b or c, order, _or, or1"), 2);
        assert_eq!(
            jumps(b"if x then goto done elseif y then break end ::done::"),
            3
        );
        assert_eq!(
            jumps(b"'and \\' or' \"and\" [[ and ]] [==[ or ]] or ]==] and"),
            1
        );
        assert_eq!(
            jumps(b"-- and or\nx = t[ [[and]] ] or 1 --[[ and\nor ]] --[=[ or ]] ]=] and"),
            2
        );
        assert_eq!(jumps(b"x = 'open and\nand"), 1);
        assert_eq!(jumps(b"--[[ and"), 0);
        assert_eq!(jumps(b""), 0);
    }
}

//! How long a text takes Lua's compiler.
//!
//! The compiler is C and cannot be left. Two things take it longer than in proportion to the text:
//!
//! - It keeps the jumps of `and`, `or`, `elseif`, `goto` and `break` in lists that it walks from
//!   the start for each new one, and compares each label with all before it. A chain of them takes
//!   time that grows with the square of its length: 10,000 take 0.3 s, a megabyte of them minutes.
//! - It compares each name with the variables of its function, and of all functions around that. In
//!   150 functions inside of each other, with 190 variables each, a megabyte of names takes 10 s.
//!
//! So what a script makes up itself is bounded in bytes, in jumps and in comparisons, and a script
//! itself in the last two.
//!
//! Words are counted where Lua's lexer (`llex.c`) sees them. Both have to agree on where comments
//! and strings end, up to the first mistake in the text: the compiler stops there.

/// Words that are compiled to a jump which is linked to others of its kind.
const JUMPS: [&[u8]; 5] = [b"and", b"or", b"elseif", b"goto", b"break"];

/// The other words that are no names, but for those that begin and end blocks.
const KEYWORDS: [&[u8]; 11] = [
    b"else", b"false", b"for", b"in", b"local", b"nil", b"not", b"return", b"then", b"true",
    b"while",
];

/// Variables that a function can have, and variables of functions around it: limits of Lua.
const MOST_VARIABLES: u64 = 200 + 255;

/// What a text may cost that a script gives to `load`.
const MOST_LOADED: Cost = Cost {
    jumps: 5_000,
    comparisons: 500_000_000,
};

/// What a script or a module may cost: more, since it is there before the program runs, but not so
/// much that its start holds a worker for seconds.
const MOST_IN_SCRIPT: Cost = Cost {
    jumps: 10_000,
    comparisons: 1_000_000_000,
};

/// Says why a text is not loaded, if it would take too long to compile.
pub(crate) fn check_loaded(text: &[u8]) -> Result<(), String> {
    check(
        text,
        MOST_LOADED,
        "text",
        "load it in parts, or make it a module",
    )
}

/// Says why a script or a module is not compiled, if it would take too long.
pub(crate) fn check_script(text: &str) -> Result<(), String> {
    let advice = "move a part of it into a module";
    check(text.as_bytes(), MOST_IN_SCRIPT, "script", advice)
}

fn check(text: &[u8], most: Cost, what: &str, advice: &str) -> Result<(), String> {
    let Cost { jumps, comparisons } = Cost::of(text);
    if jumps > most.jumps {
        return Err(format!(
            "the {what} has more than {} of 'and', 'or', 'elseif', 'goto', 'break' and labels, \
             which takes the compiler too long: {advice}",
            most.jumps
        ));
    }
    if comparisons > most.comparisons {
        return Err(format!(
            "the {what} has too many names in functions that are inside of each other, which takes \
             the compiler too long: {advice}"
        ));
    }
    Ok(())
}

/// What grows faster than a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cost {
    /// Jumps and labels.
    jumps: usize,
    /// At most so many variables are compared with names.
    comparisons: u64,
}

impl Cost {
    fn of(text: &[u8]) -> Cost {
        let (mut jumps, mut colons) = (0, 0);
        let mut scopes = Scopes::default();
        let mut rest = text;
        while let Some((&first, after)) = rest.split_first() {
            rest = match first {
                b'-' if after.first() == Some(&b'-') => skip_comment(&after[1..]),
                b'[' => skip_long(rest).unwrap_or(after),
                b'"' | b'\'' => skip_quoted(after, first),
                b':' if after.first() == Some(&b':') => {
                    colons += 1;
                    &after[1..]
                }
                _ if is_word(first) => {
                    let end = rest.iter().position(|byte| !is_word(*byte));
                    let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                    match JUMPS.contains(&word) {
                        true => jumps += 1,
                        false if first.is_ascii_digit() => {}
                        false => scopes.add(word),
                    }
                    after
                }
                _ => after,
            };
        }
        Cost {
            // A label has two.
            jumps: jumps + colons / 2,
            comparisons: scopes.comparisons,
        }
    }
}

/// The functions around a place, and what the names up to there are compared with at most.
struct Scopes {
    /// The blocks that have begun and not ended: whether each is a function.
    blocks: Vec<bool>,
    /// Of the text itself, and of each function around this place: names so far. So many variables
    /// it has at most, its own and those of functions around it that functions inside of it use.
    names: Vec<u64>,
    /// The sum of these.
    visible: u64,
    comparisons: u64,
}

impl Default for Scopes {
    fn default() -> Scopes {
        Scopes {
            blocks: Vec::new(),
            names: vec![0],
            visible: 0,
            comparisons: 0,
        }
    }
}

impl Scopes {
    fn add(&mut self, word: &[u8]) {
        match word {
            b"function" => {
                self.blocks.push(true);
                self.names.push(0);
            }
            // The `do` of a loop, too: its `while` or `for` has no end of its own.
            b"do" | b"if" | b"repeat" => self.blocks.push(false),
            b"end" | b"until" => {
                if self.blocks.pop() == Some(true) {
                    self.visible -= self.names.pop().unwrap_or_default();
                }
            }
            word if KEYWORDS.contains(&word) => {}
            _ => {
                // A function around another has as many, so only those inside can have fewer.
                let fewer = self.names.iter_mut().rev();
                for names in fewer.take_while(|names| **names < MOST_VARIABLES) {
                    *names += 1;
                    self.visible += 1;
                }
                self.comparisons = self.comparisons.saturating_add(self.visible);
            }
        }
    }
}

/// Of a name or a number: a number that a word follows without a space is a mistake.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_line_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// What C calls a space, which has the vertical tab among them.
fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// What is behind a comment, whose dashes are gone already.
fn skip_comment(text: &[u8]) -> &[u8] {
    skip_long(text).unwrap_or_else(|| {
        let end = text.iter().position(|byte| is_line_end(*byte));
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
        // The same signs are not counted again for each bracket: a text of them takes one pass.
        rest = &rest[closing..];
    }
    // It does not end: no word follows.
    Some(&[])
}

/// What is behind a string that ends with `quote`, or with its line.
fn skip_quoted(text: &[u8], quote: u8) -> &[u8] {
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            b'\\' => skip_escape(after),
            // The string is not finished, which is a mistake.
            b'\n' | b'\r' => return rest,
            byte if byte == quote => return after,
            _ => after,
        };
    }
    rest
}

/// What is behind an escape, whose backslash is gone already. Of those with digits the first byte
/// is enough: a digit is no quote, and anything else is a mistake.
fn skip_escape(text: &[u8]) -> &[u8] {
    match text {
        // A line end of two bytes is one, in either order.
        [b'\r', b'\n', after @ ..] | [b'\n', b'\r', after @ ..] => after,
        // All spaces and lines that follow.
        [b'z', after @ ..] => {
            let end = after.iter().position(|byte| !is_space(*byte));
            &after[end.unwrap_or(after.len())..]
        }
        [_, after @ ..] => after,
        [] => text,
    }
}

#[cfg(test)]
mod tests {
    use mlua::{Lua, LuaOptions, StdLib};

    use super::{Cost, MOST_IN_SCRIPT, check_loaded, check_script};

    fn jumps(text: &[u8]) -> usize {
        Cost::of(text).jumps
    }

    #[test]
    fn words_are_counted_outside_of_strings_and_comments() {
        assert_eq!(jumps(b"return a and b or c, order, _or, or1"), 2);
        assert_eq!(
            jumps(b"if x then goto done elseif y then break end ::done::"),
            4
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

    #[test]
    fn lines_and_strings_end_where_they_do_for_lua() {
        assert_eq!(jumps(b"-- and\rand"), 1);
        assert_eq!(jumps(b"--[==\rand"), 1);
        assert_eq!(jumps(b"x = 'open\rand"), 1);
        assert_eq!(jumps(b"x = '\\z\n \r\n\t\x0b\x0c and' and"), 1);
        assert_eq!(
            jumps(b"x = 'a\\\r\nb' and 'a\\\n\rb' and 'a\\\nb' and 'a\\\rb' and"),
            4
        );
        assert_eq!(jumps(b"x = '\\x41\\u{41}\\065\\'' and"), 1);
        assert_eq!(jumps(b"x = [=[ ]] ]==] ]=]=] and ]=] and"), 2);
        assert_eq!(jumps(b"x = '\\"), 0);
    }

    #[test]
    fn a_script_with_too_many_jumps_is_refused_and_says_why() {
        let chain = |jumps: usize| format!("return {}a", "a or ".repeat(jumps));
        assert_eq!(check_script(&chain(MOST_IN_SCRIPT.jumps)), Ok(()));
        let problem =
            check_script(&chain(MOST_IN_SCRIPT.jumps + 1)).expect_err("it has one too many");
        assert!(problem.contains("more than 10000"), "{problem}");
    }

    /// So many functions inside of each other, with variables, and names in the innermost.
    fn nested(levels: usize, names: usize) -> String {
        let mut text = String::new();
        for level in 0..levels {
            let variables: Vec<String> = (0..190).map(|n| format!("v{level}_{n}")).collect();
            text += &format!("local {} local function f() ", variables.join(","));
        }
        text + &"x=x ".repeat(names / 2) + &"end ".repeat(levels)
    }

    #[test]
    fn names_cost_what_they_are_compared_with() {
        let comparisons = |text: &str| Cost::of(text.as_bytes()).comparisons;
        assert_eq!(comparisons("a b c"), 1 + 2 + 3);
        // Each is the text's; `c` and `d` are the function's, too, and that has ended at `e`.
        assert_eq!(
            comparisons("a function b(c) d end e"),
            1 + (2 + 1) + (3 + 2) + (4 + 3) + 5
        );
        let blocks =
            "while a do if b then repeat until c end end for d = 1, 2 do end function e() end f";
        assert_eq!(comparisons(blocks), 1 + 2 + 3 + 4 + (5 + 1) + 6);
        // As many as all of them have, for each name.
        let (few, many) = (nested(10, 10_000), nested(10, 20_000));
        assert!(comparisons(&many) - comparisons(&few) >= 10_000 * 10 * 190);
        assert_eq!(comparisons("end end until"), 0);
    }

    #[test]
    fn code_that_is_not_nested_may_be_long() {
        let function =
            "local function f(a, b) local c = a + b return print(c, a.x, b.y) end f(1, 2) ";
        let text = format!("do {} end", function.repeat((1 << 20) / function.len()));
        assert_eq!(check_loaded(text.as_bytes()), Ok(()));
        assert_eq!(check_script(&text.repeat(3)), Ok(()));
        let problem = check_loaded(nested(100, 200_000).as_bytes()).expect_err("it takes seconds");
        assert!(problem.contains("too many names"), "{problem}");
    }

    /// Pieces on whose borders a scanner can go wrong, and what it has to find.
    const PIECES: [&str; 32] = [
        "'",
        "'",
        "\"",
        "\"",
        "\\",
        "\\z",
        "\\\n",
        "\\\r",
        "\\\r\n",
        "\\\n\r",
        "\\x41",
        "\\u{41}",
        "\\065",
        "\\'",
        "\\\"",
        "\\\\",
        "\n",
        "\r",
        "\r\n",
        " ",
        "\x0b",
        "--",
        "--[[",
        "--[=[",
        "]]",
        "]=]",
        "]==]",
        " x=",
        ";",
        "[[",
        "[=[",
        "goto nowhere ",
    ];

    /// Lua's compiler says of a text that it has this `goto` if it has seen the word.
    #[test]
    fn no_word_that_the_compiler_sees_is_missed() {
        let lua = Lua::new_with(StdLib::NONE, LuaOptions::new()).expect("a state");
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 16) as usize % below
        };
        let (mut seen, mut hidden) = (0, 0);
        for _ in 0..200_000 {
            let mut text = String::new();
            for _ in 0..1 + random(4) {
                // A frame that is valid if the pieces inside of it are.
                let (open, close) = [
                    (" x='", "' "),
                    (" x=\"", "\" "),
                    (" x=[[", "]] "),
                    (" x=[=[", "]=] "),
                    (" --", "\n"),
                    (" --", "\r"),
                    (" --[[", "]] "),
                    (" --[=[", "]=] "),
                ][random(8)];
                text += open;
                for _ in 0..random(5) {
                    text += PIECES[random(PIECES.len())];
                }
                text += close;
            }
            let compiled = lua.load(&text).into_function();
            match compiled {
                Ok(_) => {
                    hidden += usize::from(text.contains("goto"));
                    assert_eq!(jumps(text.as_bytes()), 0, "{text:?}");
                }
                Err(error) if error.to_string().contains("no visible label") => {
                    seen += 1;
                    assert!(jumps(text.as_bytes()) > 0, "{text:?}");
                }
                // The compiler has stopped at a mistake.
                Err(_) => {}
            }
        }
        assert!(seen > 100 && hidden > 100, "{seen} seen, {hidden} hidden");
    }
}

//! Small helpers on text: words, columns, and Rust without its comments and strings.

/// Whether `word` occurs in `text` as a whole word; `-` counts as part of a word if asked for.
pub(crate) fn has_word(text: &str, word: &str, dash_joins: bool) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_' || (dash_joins && c == '-');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// Rows with every column as wide as its widest cell.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (width, cell) in widths.iter().zip(row) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width + 2 - cell.chars().count()));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// The last `count` lines.
pub(crate) fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Rust source with comments and the insides of literals blanked out; lines stay where they are.
pub(crate) fn code_only(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < chars.len() {
        let end = token_end(&chars, at);
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(
                chars[at..end]
                    .iter()
                    .map(|c| if *c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    code
}

/// Where the comment or literal that begins at `at` ends; `at` itself if none does.
fn token_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => (at..chars.len())
            .find(|i| chars[*i] == '\n')
            .unwrap_or(chars.len()),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => quoted_end(chars, at, '"'),
        // A raw string's prefix must not be the end of an identifier.
        'r' if at == 0 || !is_word(chars[at - 1]) || "bc".contains(chars[at - 1]) => {
            raw_string_end(chars, at)
        }
        // 'x' and '\n' are characters, 'name is a lifetime.
        '\'' if next == Some('\\') || chars.get(at + 2) == Some(&'\'') => {
            quoted_end(chars, at, '\'')
        }
        _ => at,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0usize, start);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    chars.len()
}

fn quoted_end(chars: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    let open = start + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return start;
    }
    (open + 1..chars.len())
        .find(|i| {
            chars[*i] == '"' && chars[i + 1..].iter().take_while(|c| **c == '#').count() >= hashes
        })
        .map_or(chars.len(), |i| i + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_not_part_of_a_longer_one() {
        assert!(has_word("see `windlass-core`.", "windlass-core", true));
        assert!(!has_word("see windlass-core", "windlass", true));
        assert!(has_word("windlass-core and windlass", "windlass", true));
        assert!(!has_word("forbid(unsafe_code)", "unsafe", false));
        assert!(has_word("unsafe{}", "unsafe", false));
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        let blanked = |source: &str| {
            let code = code_only(source);
            assert_eq!(code.lines().count(), source.lines().count());
            has_word(&code, "unsafe", false)
        };
        assert!(!blanked("// unsafe\nlet x = 1;"));
        assert!(!blanked("/* a /* unsafe */ unsafe */ let x = 1;"));
        assert!(!blanked(r#"let x = "a \" unsafe";"#));
        assert!(!blanked("let x = r#\"\" unsafe \"#;"));
        assert!(!blanked("let x = br\"\n unsafe\";"));
        assert!(blanked("let quote = '\"'; unsafe { x() }"));
        assert!(blanked("fn f<'a>(x: &'a str) { unsafe { x() } } // 'b"));
        assert!(blanked("let escaped = '\\''; unsafe { x() }"));
        assert!(blanked("let r#type = 1; unsafe { x() }"));
        assert!(blanked("let char = \"\"; unsafe fn x() {}"));
    }

    #[test]
    fn columns_line_up() {
        let rows = [["a", "bbb", "c"], ["aaa", "b", ""]].map(|row| row.map(String::from).to_vec());
        assert_eq!(columns(&rows), "a    bbb  c\naaa  b\n");
    }

    #[test]
    fn the_tail_may_be_longer_than_the_text() {
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
    }
}

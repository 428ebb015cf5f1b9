//! Work that was left for later.

use super::Problem;
use crate::text;

/// What must not stay in the source. Spelled in pieces, so that this file passes its own check.
const MACROS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[ig", "nore"),
];
const WORDS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

pub(super) fn check(file: &str, source: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let macros = MACROS.iter().filter(|pattern| line.contains(**pattern));
        let words = WORDS
            .iter()
            .filter(|word| text::has_word(line, word, false));
        problems.extend(macros.chain(words).map(|what| Problem::Leftover {
            file: file.to_owned(),
            line: index + 1,
            what,
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_found_where_they_are() {
        let source = format!(
            "fn a() {{}}\n// {}: later\n    {})\n{}]\n",
            WORDS[0], MACROS[0], MACROS[2]
        );
        let found: Vec<(usize, &str)> = check("a.rs", &source)
            .into_iter()
            .map(|problem| match problem {
                Problem::Leftover { line, what, .. } => (line, what),
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(found, [(2, WORDS[0]), (3, MACROS[0]), (4, MACROS[2])]);
    }

    #[test]
    fn longer_words_are_something_else() {
        assert_eq!(check("a.rs", &format!("const {}L: u8 = 30;", WORDS[1])), []);
    }

    #[test]
    fn this_file_passes_its_own_check() {
        assert_eq!(check("leftovers.rs", include_str!("leftovers.rs")), []);
    }
}

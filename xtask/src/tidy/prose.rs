//! Comments and Markdown that a reader cannot use: too short, or too wide.

use super::Problem;

/// Columns of a comment line or a line of Markdown.
const COLUMNS: usize = 100;

/// Words of a doc comment.
const WORDS: usize = 3;

/// Checks the comments of a Rust file.
pub(super) fn check_rust(file: &str, source: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut in_code = false;
    // The first line of the doc comment that goes on, and its words.
    let mut doc: Option<(usize, usize)> = None;
    for (index, line) in source.lines().enumerate() {
        let (line_number, trimmed) = (index + 1, line.trim_start());
        match doc_text(trimmed) {
            Some(text) => {
                let words = text.split_whitespace().count();
                let (_, so_far) = doc.get_or_insert((line_number, 0));
                *so_far += words;
            }
            None => problems.extend(short_doc(file, doc.take())),
        }
        let Some(comment) = trimmed.strip_prefix("//") else {
            in_code = false;
            continue;
        };
        let text = comment.trim_start_matches(['/', '!']).trim_start();
        if text.starts_with("```") {
            in_code = !in_code;
        } else if !in_code && is_too_wide(line, text) {
            problems.push(Problem::TooWide {
                file: file.to_owned(),
                line: line_number,
            });
        }
    }
    problems.extend(short_doc(file, doc));
    problems
}

/// Checks the lines of a Markdown file.
pub(super) fn check_markdown(file: &str, source: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut in_code = false;
    for (index, line) in source.lines().enumerate() {
        let text = line.trim_start();
        if text.starts_with("```") {
            in_code = !in_code;
        } else if !in_code && is_too_wide(line, text) {
            problems.push(Problem::TooWide {
                file: file.to_owned(),
                line: index + 1,
            });
        }
    }
    problems
}

/// The text of a line of an outer doc comment.
fn doc_text(trimmed: &str) -> Option<&str> {
    let text = trimmed.strip_prefix("///")?;
    (!text.starts_with('/')).then_some(text)
}

/// A row of a table and a line with a link cannot be broken.
fn is_too_wide(line: &str, text: &str) -> bool {
    let is_exempt = text.starts_with('|') || text.contains("://") || text.contains("](");
    !is_exempt && line.chars().count() > COLUMNS
}

fn short_doc(file: &str, doc: Option<(usize, usize)>) -> Option<Problem> {
    let (line, words) = doc?;
    (words < WORDS).then(|| Problem::ShortDoc {
        file: file.to_owned(),
        line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(problems: &[Problem]) -> Vec<(usize, bool)> {
        problems
            .iter()
            .map(|problem| match problem {
                Problem::ShortDoc { line, .. } => (*line, true),
                Problem::TooWide { line, .. } => (*line, false),
                other => panic!("{other}"),
            })
            .collect()
    }

    #[test]
    fn a_doc_comment_of_fewer_than_three_words_is_refused() {
        let source = "/// It.\nfn a() {}\n/// Returns the\n/// value.\nfn b() {}\n    /// Which.";
        assert_eq!(lines(&check_rust("a.rs", source)), [(1, true), (6, true)]);
    }

    #[test]
    fn a_rule_of_slashes_and_an_inner_doc_comment_may_be_short() {
        assert_eq!(check_rust("a.rs", "//////\n//! Files.\n// No.\n"), []);
    }

    #[test]
    fn a_wide_comment_is_refused_outside_of_code_tables_and_links() {
        let wide = "word ".repeat(21);
        let link = format!("https://example.org/{}", "a".repeat(100));
        let source = format!(
            "// {wide}\n/// | {wide} |\n/// ```\n/// {wide}\n/// ```\n// {link}\nlet a = \"{wide}\";\n"
        );
        assert_eq!(lines(&check_rust("a.rs", &source)), [(1, false)]);
        let page = format!("{wide}\n| {wide}|\n```\n{wide}\n```\n[a]({link})\n");
        assert_eq!(lines(&check_markdown("a.md", &page)), [(1, false)]);
    }
}

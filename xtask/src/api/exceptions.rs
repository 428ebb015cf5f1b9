//! The file of differences that are meant to be.
//!
//! A line `# Heading` names a heading of the porting page, which has the reason of all lines below
//! it. A line is `SIDE KIND SUBJECT`: the side is `windlass`, `facade` or `both`, the kind has `-`
//! for each space, and `*` in a subject stands for any text.

use std::collections::BTreeSet;

use super::compare::Difference;
use crate::error::Error;

pub(super) const FILE: &str = "facade/tokio-api.exceptions";
/// The page with the reasons.
pub(super) const PAGE: &str = "docs/adopt/porting.md";

/// The lines of the file.
#[derive(Debug)]
pub(super) struct Exceptions {
    lines: Vec<Line>,
    pub(super) headings: Vec<String>,
}

#[derive(Debug)]
struct Line {
    number: usize,
    side: String,
    kind: String,
    subject: String,
}

impl Exceptions {
    pub(super) fn parse(text: &str) -> Result<Exceptions, Error> {
        let mut exceptions = Exceptions {
            lines: Vec::new(),
            headings: Vec::new(),
        };
        let lines = text.lines().map(str::trim).enumerate();
        for (index, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let wrong = |lacks| Error::Shape {
                what: format!("{FILE}:{}", index + 1),
                lacks,
            };
            if let Some(heading) = line.strip_prefix("# ") {
                exceptions.headings.push(heading.to_owned());
                continue;
            }
            let mut words = line.splitn(3, ' ').map(|word| word.trim().to_owned());
            let (Some(side), Some(kind), Some(subject)) =
                (words.next(), words.next(), words.next())
            else {
                return Err(wrong("a side, a kind and a subject"));
            };
            if !["windlass", "facade", "both"].contains(&side.as_str()) {
                return Err(wrong("a side: `windlass`, `facade` or `both`"));
            }
            if exceptions.headings.is_empty() {
                return Err(wrong("a heading above it, with the reason"));
            }
            exceptions.lines.push(Line {
                number: index + 1,
                side,
                kind,
                subject,
            });
        }
        Ok(exceptions)
    }

    /// Returns the numbers of the lines that except a difference.
    pub(super) fn covering(&self, side: &str, difference: &Difference) -> BTreeSet<usize> {
        let kind = difference.kind.to_string().replace(' ', "-");
        let lines = self.lines.iter().filter(|line| {
            (line.side == side || line.side == "both")
                && line.kind == kind
                && matches(&line.subject, &difference.subject)
        });
        lines.map(|line| line.number).collect()
    }

    /// Returns what is wrong with lines that excepted nothing on one of their sides.
    pub(super) fn stale(&self, used: &[(&str, BTreeSet<usize>)]) -> Vec<String> {
        let mut stale = Vec::new();
        for line in &self.lines {
            for (side, used) in used {
                let applies = line.side == *side || line.side == "both";
                if applies && !used.contains(&line.number) {
                    let number = line.number;
                    stale.push(format!(
                        "{FILE}:{number}: {}: no such difference in {side}; remove the line",
                        line.subject
                    ));
                }
            }
        }
        stale
    }

    /// Returns the headings that the porting page lacks.
    pub(super) fn without_reason(&self, page: &str) -> Vec<String> {
        let has = |heading: &str| {
            page.lines()
                .any(|line| line.trim_start_matches('#').trim() == heading && line.starts_with('#'))
        };
        self.headings
            .iter()
            .filter(|heading| !has(heading))
            .map(|heading| format!("{PAGE} has no heading `{heading}`, which {FILE} names"))
            .collect()
    }
}

/// Whether a text is one that a pattern with `*` stands for.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    (0..=text.len()).any(|at| text.get(at..).is_some_and(|text| matches(rest, text)))
}

#[cfg(test)]
mod tests {
    use super::super::compare::Kind;
    use super::*;

    fn difference(subject: &str) -> Difference {
        Difference {
            kind: Kind::MissingImpl,
            subject: subject.to_owned(),
            detail: String::new(),
        }
    }

    #[test]
    fn a_line_covers_its_side_and_is_stale_on_the_other() {
        let text = "# Names\nboth missing-impl a::*: Debug\nwindlass missing-impl b\n";
        let exceptions = Exceptions::parse(text).unwrap();
        let used = exceptions.covering("windlass", &difference("a::B: Debug"));
        assert_eq!(used, BTreeSet::from([2]));
        assert!(exceptions.covering("facade", &difference("b")).is_empty());
        let stale = exceptions.stale(&[("windlass", used), ("facade", BTreeSet::new())]);
        assert_eq!(stale.len(), 2, "{stale:?}");
        assert!(stale[0].contains(":2:") && stale[0].contains("facade"));
        assert!(stale[1].contains(":3:"));
    }

    #[test]
    fn lines_without_a_side_or_a_heading_are_refused() {
        assert!(Exceptions::parse("both missing a::b\n").is_err());
        assert!(Exceptions::parse("# Names\nmissing a::b\n").is_err());
        assert!(Exceptions::parse("# Names\nours missing a::b\n").is_err());
    }

    #[test]
    fn a_heading_must_be_on_the_page() {
        let exceptions = Exceptions::parse("# Names\n# Stack\n").unwrap();
        let missing = exceptions.without_reason("# Porting\n\n## Names\n\nStack\n");
        assert_eq!(missing.len(), 1);
        assert!(missing[0].contains("`Stack`"), "{missing:?}");
    }

    #[test]
    fn stars_stand_for_any_text() {
        assert!(matches("a::*::c", "a::b::c") && matches("*", "") && matches("a*", "a"));
        assert!(!matches("a::*::c", "a::b::d") && !matches("a", "ab"));
    }
}

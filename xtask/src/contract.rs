//! `cargo xtask contract`: every numbered behaviour of `docs/contracts/` is named by a test.
//!
//! A behaviour is a line `- **E1** ...`; its tests are called `e1_...`. One that is marked
//! `(later: why)` needs none yet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::error::Error;
use crate::text;
use crate::workspace::Workspace;

const PAGES: &str = "docs/contracts/";
/// Lines above a function in which its test attribute may stand.
const ATTRIBUTE_LINES: usize = 4;

/// The letter of a contract and the number of a behaviour in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    letter: char,
    number: u32,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.letter, self.number)
    }
}

impl Number {
    /// Reads `E1`; the whole text must be the number.
    fn parse(text: &str) -> Option<Self> {
        let mut chars = text.chars();
        let letter = chars.next().filter(char::is_ascii_uppercase)?;
        let digits = chars.as_str();
        let number = digits
            .chars()
            .all(|c| c.is_ascii_digit())
            .then(|| digits.parse().ok())??;
        Some(Number { letter, number })
    }

    /// Reads the `e1` of a test called `e1_...`.
    fn of_test(name: &str) -> Option<Self> {
        let (number, rest) = name.split_once('_')?;
        let lower = number.starts_with(|c: char| c.is_ascii_lowercase());
        (lower && !rest.is_empty()).then(|| Number::parse(&number.to_ascii_uppercase()))?
    }
}

/// A promise of a contract.
#[derive(Debug, PartialEq, Eq)]
struct Behaviour {
    number: Number,
    /// Why it has no test yet.
    later: Option<String>,
}

/// A gap between the contracts and the tests.
#[derive(Debug, PartialEq, Eq)]
enum Gap {
    Untested(Number),
    Unknown { number: Number, test: String },
    Twice(Number),
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gap::Untested(number) => {
                let prefix = number.to_string().to_ascii_lowercase();
                write!(
                    f,
                    "{number}: no test is called `{prefix}_...`; write one, or mark the line `(later: why)`"
                )
            }
            Gap::Unknown { number, test } => {
                write!(
                    f,
                    "{number}: the test {test} names a behaviour that no contract has"
                )
            }
            Gap::Twice(number) => write!(
                f,
                "{number}: stands in the contracts twice; number one anew"
            ),
        }
    }
}

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    if !arguments.is_empty() {
        return Err(Error::usage("`contract` takes no arguments"));
    }
    check(workspace)
}

pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let files = workspace.files()?;
    let mut behaviours = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.starts_with(PAGES) && file.ends_with(".md"))
    {
        behaviours.extend(behaviours_of(&workspace.read(file)?));
    }
    let mut tests: BTreeMap<Number, Vec<String>> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.starts_with("crates/") && file.ends_with(".rs"))
    {
        for (number, name) in tests_of(&workspace.read(file)?) {
            tests
                .entry(number)
                .or_default()
                .push(format!("{name} ({file})"));
        }
    }
    if behaviours.is_empty() {
        println!("{PAGES}*.md hold no line like `- **E1** ...`");
        return Err(Error::Findings {
            check: "contract",
            count: 1,
            advice: "write the behaviours of the crates that exist",
        });
    }
    print!("{}", table(&behaviours, &tests));
    let gaps = gaps(&behaviours, &tests);
    for gap in &gaps {
        println!("{gap}");
    }
    if gaps.is_empty() {
        return Ok(());
    }
    Err(Error::Findings {
        check: "contract",
        count: gaps.len(),
        advice: "tests and contracts must name the same behaviours",
    })
}

/// The numbered lines of a page, each with the indented lines that continue it.
fn behaviours_of(page: &str) -> Vec<Behaviour> {
    let mut items: Vec<(Number, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        let number = line
            .strip_prefix("- **")
            .and_then(|rest| rest.split_once("**"))
            .and_then(|(number, rest)| Some((Number::parse(number)?, rest)));
        if let Some((number, rest)) = number {
            items.push((number, rest.to_owned()));
            inside = true;
        } else if let (true, true, Some((_, text))) =
            (inside, line.starts_with("  "), items.last_mut())
        {
            text.push(' ');
            text.push_str(line.trim());
        } else {
            inside = false;
        }
    }
    items
        .into_iter()
        .map(|(number, text)| Behaviour {
            number,
            later: later(&text),
        })
        .collect()
}

/// What stands in `(later: ...)`.
fn later(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("(later:")?;
    Some(rest.split(')').next().unwrap_or_default().trim().to_owned())
}

/// The tests of a source file whose names begin with a number.
fn tests_of(source: &str) -> Vec<(Number, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut tests = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let above = &lines[index.saturating_sub(ATTRIBUTE_LINES)..=index];
        let is_test = above.iter().any(|line| {
            ["#[test]", "::test]", "::test("]
                .iter()
                .any(|mark| line.contains(mark))
        });
        if let (true, Some(number)) = (is_test, Number::of_test(name)) {
            tests.push((number, name.to_owned()));
        }
    }
    tests
}

/// The name in a line that begins a function.
fn function_name(line: &str) -> Option<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let (before, rest) = code.split_once("fn ")?;
    let starts = before.is_empty() || before.ends_with([' ', ']']);
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    (starts && end > 0).then(|| &rest[..end])
}

fn gaps(behaviours: &[Behaviour], tests: &BTreeMap<Number, Vec<String>>) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut numbers = BTreeSet::new();
    for Behaviour { number, later } in behaviours {
        if !numbers.insert(*number) {
            gaps.push(Gap::Twice(*number));
        } else if later.is_none() && !tests.contains_key(number) {
            gaps.push(Gap::Untested(*number));
        }
    }
    // Letters without a contract are ordinary names: `p99_is_small` promises nothing while there is no P.
    let letters: BTreeSet<char> = numbers.iter().map(|number| number.letter).collect();
    for (number, names) in tests {
        if letters.contains(&number.letter) && !numbers.contains(number) {
            gaps.extend(names.iter().map(|test| Gap::Unknown {
                number: *number,
                test: test.clone(),
            }));
        }
    }
    gaps
}

/// Number -> tests, a row per test.
fn table(behaviours: &[Behaviour], tests: &BTreeMap<Number, Vec<String>>) -> String {
    let mut rows = Vec::new();
    for Behaviour { number, later } in behaviours {
        let mut cells: Vec<String> = tests.get(number).cloned().unwrap_or_default();
        match later {
            Some(why) => cells.push(format!("later: {why}")),
            None if cells.is_empty() => cells.push("NO TEST".to_owned()),
            None => {}
        }
        for (index, cell) in cells.into_iter().enumerate() {
            let head = if index == 0 {
                number.to_string()
            } else {
                String::new()
            };
            rows.push(vec![head, cell]);
        }
    }
    text::columns(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    const PAGE: &str = "# Engine\n\n- **fast** is no number\n- **E1** An external spawn runs.\n\
        - **E2** Sleeps are\n  never early (later: needs timers).\n- **E10** Joins.\n\n  (later: not of the list)\n";

    #[test]
    fn behaviours_are_the_numbered_lines() {
        let expected = [
            Behaviour {
                number: number("E1"),
                later: None,
            },
            Behaviour {
                number: number("E2"),
                later: Some("needs timers".to_owned()),
            },
            Behaviour {
                number: number("E10"),
                later: None,
            },
        ];
        assert_eq!(behaviours_of(PAGE), expected);
    }

    /// Test sources as text, assembled so that this file does not look like one that holds them.
    fn source(name: &str, attribute: &str) -> String {
        format!("{attribute}\n#[should_panic]\nasync fn {name}() {{}}\n")
    }

    #[test]
    fn tests_are_functions_with_an_attribute_above() {
        for attribute in [
            "#[test]",
            "#[windlass::test]",
            "    #[windlass::test(workers = 2)]",
        ] {
            let found = tests_of(&source("e1_runs", attribute));
            assert_eq!(found, [(number("E1"), "e1_runs".to_owned())], "{attribute}");
        }
        assert_eq!(tests_of(&source("e1_runs", "#[inline]")), []);
        assert_eq!(tests_of(&source("runs_e1", "#[test]")), []);
        assert_eq!(tests_of(&source("e1", "#[test]")), []);
        assert_eq!(tests_of("#[test]\n// fn e1_old()\nfn new() {}\n"), []);
        let far = format!("#[test]\n{}fn e1_far() {{}}\n", "\n".repeat(4));
        assert_eq!(tests_of(&far), []);
    }

    #[test]
    fn gaps_on_both_sides_are_found() {
        let tests = |names: &[&str]| {
            let mut tests: BTreeMap<Number, Vec<String>> = BTreeMap::new();
            for name in names {
                tests
                    .entry(Number::of_test(name).unwrap())
                    .or_default()
                    .push((*name).to_owned());
            }
            tests
        };
        let page = behaviours_of(PAGE);
        assert_eq!(gaps(&page, &tests(&["e1_a", "e10_b", "p99_c"])), []);
        assert_eq!(
            gaps(&page, &tests(&["e1_a", "e3_b"])),
            [
                Gap::Untested(number("E10")),
                Gap::Unknown {
                    number: number("E3"),
                    test: "e3_b".to_owned()
                },
            ]
        );
        let twice = behaviours_of("- **E1** a\n- **E1** b\n");
        assert_eq!(gaps(&twice, &tests(&["e1_a"])), [Gap::Twice(number("E1"))]);
    }

    #[test]
    fn the_table_shows_what_is_missing() {
        let tests = BTreeMap::from([(number("E1"), vec!["e1_a".to_owned(), "e1_b".to_owned()])]);
        assert_eq!(
            table(&behaviours_of(PAGE), &tests),
            "E1   e1_a\n     e1_b\nE2   later: needs timers\nE10  NO TEST\n"
        );
    }
}

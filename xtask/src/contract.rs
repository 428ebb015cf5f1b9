//! `cargo xtask contract`: every numbered behaviour of `docs/contracts/` is named by a test.
//!
//! A behaviour is a line `- **E1** ...`; its tests are called `e1_...`. One that is marked
//! `(later: why)` needs none yet. Only a test that is compiled and run counts: the list comes from
//! the test runner.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::error::Error;
use crate::process;
use crate::text;
use crate::workspace::Workspace;

const PAGES: &str = "docs/contracts/";

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
    let tests = numbered(tests_that_run(workspace)?);
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

/// Every test that the test runner would run: the name of its binary, and its path in it.
fn tests_that_run(workspace: &Workspace) -> Result<Vec<(String, String)>, Error> {
    let all = ["--workspace", "--all-features"];
    if process::succeeds(workspace.cargo().args(["nextest", "--version"])) {
        let mut list = workspace.cargo();
        list.args(["nextest", "list", "--message-format", "json"])
            .args(all);
        let listing = process::stdout_of(&mut list)?;
        let listing = serde_json::from_str(&listing).map_err(|source| Error::Json {
            what: "cargo nextest list".to_owned(),
            source,
        })?;
        return Ok(tests_of_nextest(&listing));
    }
    let mut list = workspace.cargo();
    list.arg("test")
        .args(all)
        .args(["--all-targets", "--", "--list", "--format", "terse"]);
    Ok(tests_of_cargo(&process::stdout_of(&mut list)?))
}

/// The tests in the answer of `cargo nextest list`.
fn tests_of_nextest(listing: &Value) -> Vec<(String, String)> {
    let suites = listing["rust-suites"].as_object().into_iter().flatten();
    suites
        .flat_map(|(binary, suite)| {
            let tests = suite["testcases"].as_object().into_iter().flatten();
            let runs = tests.filter(|(_, test)| test["ignored"] != true);
            runs.map(|(name, _)| (binary.clone(), name.clone()))
        })
        .collect()
}

/// The tests in the answer of `cargo test -- --list --format terse`, which does not name binaries.
fn tests_of_cargo(listing: &str) -> Vec<(String, String)> {
    let names = listing
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    names
        .map(|name| ("cargo test".to_owned(), name.to_owned()))
        .collect()
}

/// The tests whose names begin with a number, by that number.
fn numbered(tests: Vec<(String, String)>) -> BTreeMap<Number, Vec<String>> {
    let mut numbered: BTreeMap<Number, Vec<String>> = BTreeMap::new();
    for (binary, path) in tests {
        let name = path.rsplit("::").next().unwrap_or_default();
        if let Some(number) = Number::of_test(name) {
            let shown = format!("{name} ({binary})");
            numbered.entry(number).or_default().push(shown);
        }
    }
    numbered
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
    // Letters without a contract are ordinary names: `p99_is_small` promises nothing while there is
    // no P.
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

    #[test]
    fn only_tests_that_run_count() {
        let listing = serde_json::json!({"rust-suites": {"windlass::it": {"testcases": {
            "spawn::e1_runs": {"ignored": false},
            "spawn::e2_sleeps": {"ignored": true},
            "spawn::runs_e1": {"ignored": false},
        }}}});
        let found = numbered(tests_of_nextest(&listing));
        let expected = [(number("E1"), vec!["e1_runs (windlass::it)".to_owned()])];
        assert_eq!(found, BTreeMap::from(expected));
        let listing = "spawn::e1_runs: test\nspeed: benchmark\n\n3 tests, 1 benchmark\n";
        let found = numbered(tests_of_cargo(listing));
        assert_eq!(found.into_keys().collect::<Vec<_>>(), [number("E1")]);
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

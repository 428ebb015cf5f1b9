//! `cargo xtask instructions`: instruction counts of hot paths, where timing would be noise.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::models::LIMIT;
use crate::process::{self, How};
use crate::text;
use crate::workspace::Workspace;

/// The paths that `examples/hot_paths.rs` of windlass-core knows.
const PATHS: &[&str] = &["spawn", "yield", "wake"];
const EXAMPLE: &str = "hot_paths";
const FILE: &str = "xtask/instructions.json";
/// How much a path may grow before that is a finding.
const ALLOWED_GROWTH: f64 = 0.10;

type Counts = BTreeMap<String, u64>;

/// Why the counts cannot be compared here.
#[derive(Debug)]
pub(crate) enum Skipped {
    NoValgrind,
    NoFile,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Skipped::NoValgrind => f.write_str("valgrind is not on the PATH"),
            Skipped::NoFile => write!(f, "{FILE} does not exist"),
        }
    }
}

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    match arguments {
        [] => check(workspace),
        [write] if write == "--write" => {
            let counts = count_all(workspace)?;
            let json = Value::from_iter(counts);
            fs::write(workspace.path(FILE), format!("{json:#}\n")).map_err(Error::writing(FILE))?;
            println!("wrote {FILE}");
            Ok(())
        }
        _ => Err(Error::usage("`instructions` takes `--write` or nothing")),
    }
}

/// Whether the comparison can be made at all.
pub(crate) fn possible(workspace: &Workspace) -> Result<(), Skipped> {
    if !valgrind_is_installed() {
        Err(Skipped::NoValgrind)
    } else if !workspace.path(FILE).is_file() {
        Err(Skipped::NoFile)
    } else {
        Ok(())
    }
}

/// Counts, and compares with the file.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    workspace.require(FILE, "`cargo xtask instructions --write` makes it")?;
    let expected = parse_counts(&workspace.read(FILE)?)?;
    let counts = count_all(workspace)?;
    let mut findings = 0;
    let heads = ["path", "instructions", "in the file", "change"]
        .map(str::to_owned)
        .to_vec();
    let mut rows = vec![heads];
    for (name, count) in &counts {
        let verdict = compare(*count, expected.get(name).copied());
        findings += usize::from(verdict.is_finding());
        let before = expected
            .get(name)
            .map_or_else(|| "-".to_owned(), u64::to_string);
        rows.push(vec![
            name.clone(),
            count.to_string(),
            before,
            verdict.to_string(),
        ]);
    }
    print!("{}", text::columns(&rows));
    if findings == 0 {
        return Ok(());
    }
    Err(Error::Findings {
        check: "instructions",
        count: findings,
        advice: "make the path shorter, or accept the count with `cargo xtask instructions --write`",
    })
}

fn count_all(workspace: &Workspace) -> Result<Counts, Error> {
    if !valgrind_is_installed() {
        return Err(Error::Missing {
            tool: "valgrind",
            install: "apt-get install valgrind",
        });
    }
    let mut cargo = workspace.cargo();
    cargo.args([
        "build",
        "--release",
        "--package",
        "windlass-core",
        "--example",
        EXAMPLE,
    ]);
    let example = process::build(&mut cargo, EXAMPLE)?;
    let mut counts = Counts::new();
    for name in PATHS {
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&example)
            .arg(name);
        let ended = process::limited(&mut valgrind, LIMIT)?;
        match ended.how {
            How::Passed => {}
            How::TimedOut => {
                let command = process::describe(&valgrind);
                return Err(Error::TimedOut {
                    command,
                    seconds: LIMIT.as_secs(),
                });
            }
            How::Failed(status) => {
                println!("{}", text::tail(&ended.output, 40));
                let command = process::describe(&valgrind);
                return Err(Error::Failed {
                    command,
                    status: status.to_string(),
                });
            }
        }
        let count = collected(&ended.output).ok_or_else(|| Error::NoCount {
            name: (*name).to_owned(),
        })?;
        counts.insert((*name).to_owned(), count);
    }
    Ok(counts)
}

fn valgrind_is_installed() -> bool {
    process::succeeds(Command::new("valgrind").arg("--version"))
}

/// The total in callgrind's closing words: `==1== Collected : 12345`.
fn collected(output: &str) -> Option<u64> {
    output.lines().find_map(|line| {
        let (_, count) = line.split_once("Collected")?;
        count.trim_start().strip_prefix(':')?.trim().parse().ok()
    })
}

fn parse_counts(json: &str) -> Result<Counts, Error> {
    let value: Value = serde_json::from_str(json).map_err(|source| Error::Json {
        what: FILE.to_owned(),
        source,
    })?;
    let shape = || Error::Shape {
        what: FILE.to_owned(),
        lacks: "the form {\"path\": count, ...}",
    };
    value
        .as_object()
        .ok_or_else(shape)?
        .iter()
        .map(|(name, count)| Ok((name.clone(), count.as_u64().ok_or_else(shape)?)))
        .collect()
}

/// A count beside the one in the file.
#[derive(Debug, PartialEq)]
enum Verdict {
    Within(f64),
    Grown(f64),
    NotInFile,
}

impl Verdict {
    fn is_finding(&self) -> bool {
        !matches!(self, Verdict::Within(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Within(growth) => write!(f, "{:+.1} %", growth * 100.0),
            Verdict::Grown(growth) => {
                write!(
                    f,
                    "{:+.1} %: over {:.0} %",
                    growth * 100.0,
                    ALLOWED_GROWTH * 100.0
                )
            }
            Verdict::NotInFile => f.write_str("not in the file"),
        }
    }
}

fn compare(count: u64, expected: Option<u64>) -> Verdict {
    let Some(expected) = expected.filter(|expected| *expected > 0) else {
        return Verdict::NotInFile;
    };
    let growth = count as f64 / expected as f64 - 1.0;
    if count as f64 > expected as f64 * (1.0 + ALLOWED_GROWTH) {
        Verdict::Grown(growth)
    } else {
        Verdict::Within(growth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_from_callgrinds_words() {
        let output = "==7== Events    : Ir\n==7== Collected : 123456789\n==7== \n";
        assert_eq!(collected(output), Some(123_456_789));
        assert_eq!(collected("==7== Events : Ir\n"), None);
    }

    #[test]
    fn growth_over_a_tenth_is_a_finding() {
        assert!(!compare(110, Some(100)).is_finding());
        assert!(!compare(10, Some(100)).is_finding());
        assert_eq!(compare(120, Some(100)).to_string(), "+20.0 %: over 10 %");
        assert_eq!(compare(1, None), Verdict::NotInFile);
    }

    #[test]
    fn the_file_is_an_object_of_counts() {
        assert_eq!(parse_counts("{\"spawn\": 12}").unwrap()["spawn"], 12);
        assert!(parse_counts("[1]").is_err());
        assert!(parse_counts("{\"spawn\": \"many\"}").is_err());
    }
}

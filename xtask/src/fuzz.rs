//! `cargo xtask fuzz TARGET [--seconds N]`: bytes of all kinds, with the nightly compiler and
//! cargo-fuzz.
//!
//! The seeds are the graphs that people and tests have written. What the fuzzer learns stays below
//! `target`, so a later run goes on where an earlier one ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

const TARGETS: &[&str] = &["graph"];
/// Where the files are that a target begins with.
const SEEDS: &[&str] = &[
    "examples/graphs",
    "crates/windlass-plan/tests/fixtures/broken",
];
const SECONDS: u64 = 60;
/// What one input may cost: megabytes, seconds, bytes.
const LIMITS: [&str; 3] = ["-rss_limit_mb=2048", "-timeout=10", "-max_len=65536"];

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    target: &'static str,
    seconds: u64,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Error> {
        let Some((name, rest)) = arguments.split_first() else {
            return Err(Error::usage("`fuzz` takes the name of a target"));
        };
        let target = TARGETS.iter().find(|target| *target == name);
        let target = target.ok_or_else(|| Error::Unknown {
            kind: "fuzz target",
            name: name.clone(),
            known: TARGETS.iter().map(|&target| target.to_owned()).collect(),
        })?;
        let seconds = match rest {
            [] => Some(SECONDS),
            [flag, seconds] if flag == "--seconds" => {
                seconds.parse().ok().filter(|seconds| *seconds > 0)
            }
            _ => None,
        };
        let seconds = seconds
            .ok_or_else(|| Error::usage("`fuzz` takes a target and `--seconds N`, 1 or more"))?;
        Ok(Options { target, seconds })
    }
}

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    let options = Options::parse(arguments)?;
    if !process::succeeds(nightly(workspace).arg("--version")) {
        return Err(Error::Missing {
            tool: "the nightly toolchain, which the fuzzer needs,",
            install: "rustup toolchain install nightly",
        });
    }
    if !process::succeeds(nightly(workspace).args(["fuzz", "--version"])) {
        println!("cargo-fuzz is not installed: installing it");
        process::run(
            workspace
                .cargo()
                .args(["install", "cargo-fuzz", "--locked"]),
        )?;
    }
    let corpus = seeded(workspace, options.target)?;
    let began = SystemTime::now();
    let mut fuzzer = fuzzer(workspace, "run", options.target);
    fuzzer
        .arg(&corpus)
        .arg("--")
        .arg(format!("-max_total_time={}", options.seconds))
        .args(LIMITS)
        .arg(dictionary(workspace, options.target));
    let Err(failed) = process::run(&mut fuzzer) else {
        println!(
            "fuzz: {} found nothing in {} s",
            options.target, options.seconds
        );
        return Ok(());
    };
    match newest(&artifacts(workspace, options.target), began) {
        Some(input) => Err(Error::Crash {
            target: options.target,
            repeat: repeat(workspace, options.target, &input),
            input,
        }),
        // It did not come to that: the build failed, or the fuzzer itself.
        None => Err(failed),
    }
}

/// Cargo of the nightly toolchain; the one that started us is another.
fn nightly(workspace: &Workspace) -> Command {
    let mut rustup = Command::new("rustup");
    rustup
        .args(["run", "nightly", "cargo"])
        .current_dir(&workspace.root)
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN");
    rustup
}

fn fuzzer(workspace: &Workspace, what: &str, target: &str) -> Command {
    let mut cargo = nightly(workspace);
    cargo
        .args(["fuzz", what, "--fuzz-dir", "fuzz", "--target-dir"])
        .arg(workspace.target.join("fuzz"))
        .arg(target);
    cargo
}

fn artifacts(workspace: &Workspace, target: &str) -> PathBuf {
    workspace.path("fuzz/artifacts").join(target)
}

/// The words that the inputs of a target are made of.
fn dictionary(workspace: &Workspace, target: &str) -> String {
    let file = workspace.path("fuzz").join(format!("{target}.dict"));
    format!("-dict={}", file.display())
}

/// The command that tries one input again.
fn repeat(workspace: &Workspace, target: &str, input: &Path) -> String {
    process::describe(fuzzer(workspace, "run", target).arg(input))
}

/// The directory of inputs, with the seeds in it.
fn seeded(workspace: &Workspace, target: &str) -> Result<PathBuf, Error> {
    let corpus = workspace.target.join("fuzz-corpus").join(target);
    fs::create_dir_all(&corpus).map_err(Error::writing(&corpus))?;
    for folder in SEEDS {
        let folder = workspace.path(folder);
        for entry in fs::read_dir(&folder).map_err(Error::reading(&folder))? {
            let seed = entry.map_err(Error::reading(&folder))?.path();
            let Some(name) = seed.file_name().filter(|_| is_yaml(&seed)) else {
                continue;
            };
            fs::copy(&seed, corpus.join(name)).map_err(Error::reading(&seed))?;
        }
    }
    Ok(corpus)
}

fn is_yaml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "yaml")
}

/// The newest file that was written since.
fn newest(folder: &Path, since: SystemTime) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let written = entries.filter_map(|entry| {
        let at = entry.metadata().ok()?.modified().ok()?;
        (at >= since).then(|| (at, entry.path()))
    });
    written.max().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, Error> {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn a_target_and_a_time_can_be_given() {
        let options = |seconds| Options {
            target: "graph",
            seconds,
        };
        assert_eq!(parse(&["graph"]).unwrap(), options(SECONDS));
        assert_eq!(parse(&["graph", "--seconds", "5"]).unwrap(), options(5));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(matches!(parse(&[]), Err(Error::Usage(_))));
        assert!(matches!(parse(&["http"]), Err(Error::Unknown { .. })));
        for rest in [
            &["graph", "5"][..],
            &["graph", "--seconds"],
            &["graph", "--seconds", "0"],
        ] {
            assert!(matches!(parse(rest), Err(Error::Usage(_))), "{rest:?}");
        }
    }
}

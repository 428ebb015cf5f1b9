//! Running the tests of a file, each in a process of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use super::package::{Built, Package};
use super::results::Outcome;
use crate::error::Error;
use crate::process::{self, How};

/// How long a test may take. The slowest takes a tenth of it on tokio.
const LIMIT: Duration = Duration::from_secs(20);
/// Tests that run at the same time per core: most of them sleep.
const TESTS_PER_CORE: usize = 2;

/// The names of the tests of every file that compiles, without those that are ignored.
pub(super) fn names(
    package: &Package,
    built: &BTreeMap<String, Built>,
) -> Result<Vec<(String, Vec<String>)>, Error> {
    let mut names = Vec::new();
    for (file, built) in built {
        if let Built::Executable(executable) = built {
            let all = listed(package, executable, &[])?;
            let ignored = listed(package, executable, &["--ignored"])?;
            let tests = all.into_iter().filter(|test| !ignored.contains(test));
            names.push((file.clone(), tests.collect()));
        }
    }
    Ok(names)
}

fn listed(package: &Package, executable: &Path, more: &[&str]) -> Result<Vec<String>, Error> {
    let mut command = Command::new(executable);
    command
        .args(["--list", "--format=terse"])
        .args(more)
        .current_dir(&package.folder);
    Ok(parse_list(&process::stdout_of(&mut command)?))
}

/// Reads `name: test` from each line.
fn parse_list(text: &str) -> Vec<String> {
    let lines = text.lines();
    let tests = lines.filter_map(|line| line.strip_suffix(": test"));
    tests.map(str::to_owned).collect()
}

/// One test to run.
struct Job {
    file: String,
    test: String,
    executable: PathBuf,
}

/// Runs all tests of the files that compile; returns file, test and outcome.
pub(super) fn all(
    package: &Package,
    built: &BTreeMap<String, Built>,
) -> Result<Vec<(String, String, Outcome)>, Error> {
    let mut jobs = Vec::new();
    for (file, tests) in names(package, built)? {
        let Some(Built::Executable(executable)) = built.get(&file) else {
            continue;
        };
        jobs.extend(tests.into_iter().map(|test| Job {
            file: file.clone(),
            test,
            executable: executable.clone(),
        }));
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = Mutex::new(jobs.into_iter());
    let outcomes = Mutex::new(Vec::new());
    let work = || -> Result<(), Error> {
        loop {
            // A worker that panicked has lost its job, which shows as a panic of the scope.
            let Some(job) = jobs.lock().ok().and_then(|mut jobs| jobs.next()) else {
                return Ok(());
            };
            let outcome = run(package, &job)?;
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes.push((job.file, job.test, outcome));
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores * TESTS_PER_CORE)
            .map(|_| scope.spawn(work))
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(payload) => std::panic::resume_unwind(payload),
            }
        }
        Ok::<(), Error>(())
    })?;
    let mut outcomes = outcomes.into_inner().unwrap_or_default();
    outcomes.sort();
    Ok(outcomes)
}

fn run(package: &Package, job: &Job) -> Result<Outcome, Error> {
    let mut command = Command::new(&job.executable);
    command
        .args([&job.test, "--exact", "--test-threads=1"])
        .current_dir(&package.folder)
        .env("CARGO_MANIFEST_DIR", &package.folder)
        .env("RUST_BACKTRACE", "0");
    let ended = process::limited(&mut command, LIMIT)?;
    Ok(match ended.how {
        How::Passed => Outcome::Passed,
        How::Failed(status) => {
            let said = reason(&ended.output);
            Outcome::Failed(said.unwrap_or_else(|| status.to_string()))
        }
        How::TimedOut => Outcome::Failed(format!("did not end within {} s", LIMIT.as_secs())),
    })
}

/// The message of the first panic: the line after the one that names its place.
fn reason(output: &str) -> Option<String> {
    let mut lines = output.lines();
    lines.find(|line| line.contains("panicked at "))?;
    let message = lines.next()?.trim();
    (!message.is_empty()).then(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_from_benchmarks() {
        let text = "a::b: test\nfast: benchmark\nc: test\n\n2 tests, 1 benchmark\n";
        assert_eq!(parse_list(text), ["a::b", "c"]);
    }

    #[test]
    fn the_first_panic_is_the_reason() {
        let output =
            "running 1 test\n\nthread 'x' panicked at a.rs:1:1:\nno room\nnote: run with\n";
        assert_eq!(reason(output).as_deref(), Some("no room"));
        assert_eq!(reason("aborted"), None);
    }
}

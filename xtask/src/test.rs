//! `cargo xtask test`: everything CI runs, in order, up to the first failure.

use std::process::Command;
use std::time::Instant;

use crate::error::Error;
use crate::instructions;
use crate::models::{LOOM, SHUTTLE};
use crate::process;
use crate::text;
use crate::workspace::Workspace;
use crate::{api, contract, facade, minimal, san, surface, tidy};

/// One step of the whole.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Result<Done, Error>,
}

/// A step that did not fail.
enum Done {
    Passed,
    /// It cannot run here; the reason is said, and it counts as passed.
    Skipped(String),
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "rustfmt --check, every file: cargo fmt does not find modules inside of macros",
        run: fmt,
    },
    Step {
        name: "clippy",
        about: "cargo clippy --workspace --all-targets --all-features -- -D warnings",
        run: clippy,
    },
    Step {
        name: "features",
        about: "cargo check -p windlass with no feature, and with each alone",
        run: features,
    },
    Step {
        name: "tests",
        about: "cargo nextest run --workspace --all-features, or cargo test without nextest",
        run: tests,
    },
    Step {
        name: "facade",
        about: "cargo check in facade/, and its programs print what they should",
        run: |workspace| facade::check(workspace).map(|()| Done::Passed),
    },
    Step {
        name: "minimal",
        about: "core, sync, runtime and io compile with the lowest versions they allow",
        run: |workspace| minimal::check(workspace).map(|()| Done::Passed),
    },
    Step {
        name: "doctests",
        about: "cargo test --workspace --all-features --doc",
        run: doctests,
    },
    Step {
        name: "rustdoc",
        about: "cargo doc --workspace --all-features --no-deps, no warnings",
        run: rustdoc,
    },
    Step {
        name: "loom",
        about: "the loom models, a process each",
        run: |workspace| LOOM.check(workspace, None).map(|()| Done::Passed),
    },
    Step {
        name: "shuttle",
        about: "the shuttle runs, a process each",
        run: |workspace| SHUTTLE.check(workspace, None).map(|()| Done::Passed),
    },
    Step {
        name: "san",
        about: "the adversary programs under AddressSanitizer, where there is one",
        run: |workspace| match san::possible() {
            Ok(()) => san::quick(workspace).map(|()| Done::Passed),
            Err(error) => Ok(Done::Skipped(error.to_string())),
        },
    },
    Step {
        name: "tidy",
        about: "layers, links, leftovers, unsafe code, prose, weaken.list",
        run: |workspace| tidy::check(workspace).map(|()| Done::Passed),
    },
    Step {
        name: "surface",
        about: "every public item of windlass has one path",
        run: |workspace| surface::check(workspace).map(|()| Done::Passed),
    },
    Step {
        name: "api",
        about: "the public API is tokio's, but for facade/tokio-api.exceptions",
        run: |workspace| api::check(workspace).map(|()| Done::Passed),
    },
    Step {
        name: "contract",
        about: "every behaviour has a test",
        run: |workspace| contract::check(workspace).map(|()| Done::Passed),
    },
    Step {
        name: "instructions",
        about: "instruction counts of hot paths, where valgrind is installed",
        run: |workspace| match instructions::possible(workspace) {
            Ok(()) => instructions::check(workspace).map(|()| Done::Passed),
            Err(skipped) => Ok(Done::Skipped(skipped.to_string())),
        },
    },
];

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let steps = match arguments.as_slice() {
        [] => STEPS.iter().collect(),
        ["--list"] => {
            let rows: Vec<_> = STEPS
                .iter()
                .map(|s| vec![s.name.to_owned(), s.about.to_owned()])
                .collect();
            print!("{}", text::columns(&rows));
            return Ok(());
        }
        ["--only", names] => select(names)?,
        [only] if only.starts_with("--only=") => select(&only["--only=".len()..])?,
        _ => return Err(Error::usage("`test` takes `--only A,B` or `--list`")),
    };
    run(workspace, &steps)
}

/// The steps of a list of names, in their own order.
fn select(names: &str) -> Result<Vec<&'static Step>, Error> {
    let names: Vec<&str> = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        return Err(Error::usage(
            "`--only` needs the name of a step; `--list` prints them",
        ));
    }
    if let Some(name) = names
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Error::usage(format!(
            "there is no step `{name}`; there are: {}",
            known.join(", ")
        )));
    }
    Ok(STEPS
        .iter()
        .filter(|step| names.contains(&step.name))
        .collect())
}

fn run(workspace: &Workspace, steps: &[&Step]) -> Result<(), Error> {
    let mut rows = Vec::new();
    let (mut passed, mut failed) = (0, 0);
    for step in steps {
        let name = step.name.to_owned();
        if failed > 0 {
            rows.push(vec![name, "-".to_owned(), "not run".to_owned()]);
            continue;
        }
        println!("\n=== {}: {}", step.name, step.about);
        let start = Instant::now();
        let result = (step.run)(workspace);
        let seconds = format!("{:.1} s", start.elapsed().as_secs_f64());
        let verdict = match result {
            Ok(Done::Passed) => "passed".to_owned(),
            Ok(Done::Skipped(why)) => format!("skipped: {why}"),
            Err(error) => {
                println!("{error}");
                failed += 1;
                "FAILED".to_owned()
            }
        };
        passed = rows.len() + 1 - failed;
        println!("--- {}: {verdict}, {seconds}", step.name);
        rows.push(vec![name, seconds, verdict]);
    }
    println!("\n{}", text::columns(&rows));
    println!("{passed} passed, {failed} failed");
    if failed > 0 {
        Err(Error::Reported)
    } else {
        Ok(())
    }
}

fn fmt(workspace: &Workspace) -> Result<Done, Error> {
    require(workspace, "fmt", "rustfmt", "rustup component add rustfmt")?;
    let files = workspace.files()?;
    let sources = files.iter().filter(|file| file.ends_with(".rs"));
    let mut rustfmt = Command::new("rustfmt");
    rustfmt
        .args(["--edition", "2024", "--check"])
        .args(sources)
        .current_dir(&workspace.root);
    process::run(&mut rustfmt).map(|()| Done::Passed)
}

fn clippy(workspace: &Workspace) -> Result<Done, Error> {
    require(workspace, "clippy", "clippy", "rustup component add clippy")?;
    cargo(
        workspace,
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ],
    )
}

fn features(workspace: &Workspace) -> Result<Done, Error> {
    cargo(
        workspace,
        &["check", "-p", "windlass", "--no-default-features"],
    )?;
    for feature in workspace.features("windlass")? {
        println!("with {feature} alone");
        cargo(
            workspace,
            &[
                "check",
                "-p",
                "windlass",
                "--no-default-features",
                "--features",
                &feature,
            ],
        )?;
    }
    Ok(Done::Passed)
}

fn tests(workspace: &Workspace) -> Result<Done, Error> {
    if process::succeeds(workspace.cargo().args(["nextest", "--version"])) {
        cargo(
            workspace,
            &["nextest", "run", "--workspace", "--all-features"],
        )
    } else {
        println!("cargo-nextest is not installed; running `cargo test` instead");
        // One test at a time: some measure what the whole process uses, and nextest gives each
        // test a process of its own.
        let one_by_one = ["--", "--test-threads", "1"];
        let all = ["test", "--workspace", "--all-targets", "--all-features"];
        cargo(workspace, &[&all[..], &one_by_one[..]].concat())
    }
}

fn doctests(workspace: &Workspace) -> Result<Done, Error> {
    cargo(
        workspace,
        &["test", "--workspace", "--all-features", "--doc"],
    )
}

fn rustdoc(workspace: &Workspace) -> Result<Done, Error> {
    let mut cargo = workspace.cargo();
    cargo
        .args(["doc", "--workspace", "--all-features", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings");
    process::run(&mut cargo).map(|()| Done::Passed)
}

fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<Done, Error> {
    process::run(workspace.cargo().args(arguments)).map(|()| Done::Passed)
}

/// Says how to install a part of the toolchain that is missing.
fn require(
    workspace: &Workspace,
    subcommand: &str,
    tool: &'static str,
    install: &'static str,
) -> Result<(), Error> {
    let mut question: Command = workspace.cargo();
    if process::succeeds(question.args([subcommand, "--version"])) {
        Ok(())
    } else {
        Err(Error::Missing { tool, install })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_keep_their_order() {
        let names: Vec<&str> = select("tidy, loom,fmt")
            .unwrap()
            .iter()
            .map(|step| step.name)
            .collect();
        assert_eq!(names, ["fmt", "loom", "tidy"]);
    }

    #[test]
    fn an_unknown_step_is_answered_with_those_that_exist() {
        let Err(Error::Usage(message)) = select("tidy,moon") else {
            panic!("accepted")
        };
        assert!(
            message.contains("`moon`") && message.contains("loom"),
            "{message}"
        );
        assert!(select(",").is_err());
    }
}

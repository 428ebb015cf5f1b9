//! `cargo xtask san`: AddressSanitizer over the crates with unsafe code.
//!
//! The standard library is the one that is installed, which has no marks of the sanitizer: what its
//! own code does with memory of ours is seen, because allocation goes through the sanitizer in any
//! case. Task blocks are allocated one by one (`windlass_plain_alloc`), so that a use after free is
//! one, and switches of stacks are announced (`windlass_asan`).

use std::env;
use std::process::Command;
use std::time::Duration;

use crate::error::Error;
use crate::process::{self, How};
use crate::text;
use crate::workspace::Workspace;

/// The one target whose standard library comes with a sanitizer that we use.
pub(crate) const TARGET: &str = "x86_64-unknown-linux-gnu";
pub(crate) const FLAGS: &str = "-Zsanitizer=address --cfg windlass_plain_alloc --cfg windlass_asan";
/// Lines of a failed example's output that are shown.
const SHOWN_LINES: usize = 80;
/// Coroutines that are leaked on purpose are leaks.
pub(crate) const OPTIONS: (&str, &str) = ("ASAN_OPTIONS", "detect_leaks=0");
/// The programs that try to break the runtime; the part that runs with every `cargo xtask test`.
const QUICK: &[&[&str]] = &[&["-p", "windlass-runtime", "--test", "adversary"]];
/// All tests of the crates that hold unsafe code.
const WHOLE: &[&[&str]] = &[
    &["-p", "windlass-core", "--lib", "--tests"],
    &["-p", "windlass-sync", "--lib", "--tests"],
    &["-p", "windlass-runtime", "--lib", "--tests"],
    &["-p", "windlass-io", "--lib", "--tests"],
    &["-p", "windlass", "--tests"],
    &["-p", "windlass-lua", "--lib", "--tests"],
];
/// The examples that end by themselves, those with an argument as a demonstration.
const EXAMPLES: &[&[&str]] = &[
    &["hello"],
    &["blocking"],
    &["classes"],
    &["groups"],
    &["local"],
    &["look_inside"],
    &["shutdown"],
    &["fan_out"],
    &["pipeline"],
    &["find_a_race"],
    &["walk"],
    &["par_map"],
    &["callbacks"],
    &["echo_server", "demo"],
    &["chat", "demo"],
    &["worker_pool"],
    &["upgrade"],
    &["http_service", "demo"],
    &["partition"],
    &["graph_component"],
];
const EXAMPLE_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    possible()?;
    match arguments.as_slice() {
        [] => {
            run(workspace, WHOLE)?;
            run_examples(workspace)
        }
        ["--quick"] => run(workspace, QUICK),
        _ => Err(Error::usage("`san` takes `--quick` or nothing")),
    }
}

/// Whether the sanitizer is to be had here.
pub(crate) fn possible() -> Result<(), Error> {
    match cfg!(all(
        target_os = "linux",
        target_arch = "x86_64",
        target_env = "gnu"
    )) {
        true => Ok(()),
        false => Err(Error::Unsupported {
            what: "AddressSanitizer",
            needs: TARGET,
        }),
    }
}

/// The part that runs with every `cargo xtask test`.
pub(crate) fn quick(workspace: &Workspace) -> Result<(), Error> {
    run(workspace, QUICK)
}

fn run(workspace: &Workspace, parts: &[&[&str]]) -> Result<(), Error> {
    for part in parts {
        println!("under AddressSanitizer: {}", part.join(" "));
        process::run(&mut cargo(workspace, part))?;
    }
    Ok(())
}

fn run_examples(workspace: &Workspace) -> Result<(), Error> {
    let mut build = cargo_for(workspace, &["build"], &["-p", "windlass", "--all-features"]);
    process::run(build.arg("--examples"))?;
    let folder = workspace.target.join("san").join(TARGET);
    let mut failed = 0;
    for example in EXAMPLES {
        let program = folder.join("debug/examples").join(example[0]);
        let mut command = Command::new(program);
        command
            .args(&example[1..])
            .current_dir(&workspace.root)
            .env(OPTIONS.0, OPTIONS.1);
        let ended = process::limited(&mut command, EXAMPLE_LIMIT)?;
        let is_fine = ended.how == How::Passed && !ended.output.contains("AddressSanitizer");
        println!("{}: {}", example[0], if is_fine { "ok" } else { "FAILED" });
        if !is_fine {
            println!("{}", text::tail(&ended.output, SHOWN_LINES));
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(Error::Findings {
            check: "san",
            count: failed,
            advice: "run the example alone; its program is in target/san",
        }),
    }
}

fn cargo(workspace: &Workspace, part: &[&str]) -> Command {
    let runner = if process::succeeds(workspace.cargo().args(["nextest", "--version"])) {
        ["nextest", "run"].as_slice()
    } else {
        &["test"]
    };
    cargo_for(workspace, runner, part)
}

fn cargo_for(workspace: &Workspace, verb: &[&str], part: &[&str]) -> Command {
    let mut cargo = workspace.cargo();
    cargo
        .args(verb)
        .args(part)
        .args(["--target", TARGET, "--target-dir"])
        .arg(workspace.target.join("san"))
        // Sanitizers are unstable flags of the stable compiler.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", flags())
        .env(OPTIONS.0, OPTIONS.1)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo
}

fn flags() -> String {
    let own = env::var("RUSTFLAGS").unwrap_or_default();
    format!("{own} {FLAGS}")
}

//! The chores of this workspace: `cargo xtask <command>`.
#![forbid(unsafe_code)]

mod api;
mod bench;
mod contract;
mod error;
mod facade;
mod folder_copy;
mod fuzz;
mod instructions;
mod loom;
mod minimal;
mod models;
mod process;
mod rustdoc;
mod san;
mod shuttle;
mod soak;
mod surface;
mod test;
mod text;
mod tidy;
mod tokio_tests;
mod weaken;
mod workspace;

use std::env;
use std::process::ExitCode;

use error::Error;
use workspace::Workspace;

const USAGE: &str = "\
Usage: cargo xtask <command> [arguments]

  tidy                     layers, links, leftovers, unsafe code, ARCHITECTURE.md, weaken.list
  surface [--list]         every public item of `windlass` has one path
  api [--all]              what tokio's public API has and ours lacks; --all: the exceptions, too
  contract                 every numbered behaviour of docs/contracts/ has a test
  test [--only A,B]        everything CI runs; --list prints the steps
  loom [MODEL]             the loom models of all crates, a process each
  shuttle [TEST]           the shuttle runs of windlass-core, a process each
  san [--quick]            AddressSanitizer over the crates with unsafe code; --quick: what CI runs
  weaken [NAME]            breaks each line of xtask/weaken.list in a copy; its loom model must fail
  minimal                  core, sync, runtime and io compile with the lowest versions they allow
  bench [ARGUMENTS]        measures us and our peers, writes the tables; `bench --help` says more
  soak [SECONDS]           an HTTP server under load and clients that break off: what it holds stays flat
  soak --mix [SECONDS]     every front end at once, with kills, cancels, panics and resizes, for 600 s or so long
  instructions [--write]   counts the instructions of hot paths with callgrind
  tokio-tests PATH         tokio's integration tests from a checkout of it, on facade/tokio;
                           --only FILE,FILE; --list-only; --baseline: which tests are applicable
  fuzz TARGET [--seconds N]  bytes of all kinds for 60 s or N; the target is `graph`; needs nightly
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Usage(problem)) => {
            eprintln!("xtask: {problem}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(Error::Reported) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Error> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(Error::usage("which command?"));
    };
    if matches!(command.as_str(), "help" | "--help" | "-h") {
        print!("{USAGE}");
        return Ok(());
    }
    let run: fn(&Workspace, &[String]) -> Result<(), Error> = match command.as_str() {
        "tidy" => tidy::command,
        "surface" => surface::command,
        "api" => api::command,
        "contract" => contract::command,
        "test" => test::command,
        "loom" => loom::command,
        "san" => san::command,
        "shuttle" => shuttle::command,
        "weaken" => weaken::command,
        "minimal" => minimal::command,
        "bench" => bench::command,
        "soak" => soak::command,
        "instructions" => instructions::command,
        "tokio-tests" => tokio_tests::command,
        "fuzz" => fuzz::command,
        _ => return Err(Error::usage(format!("there is no command `{command}`"))),
    };
    run(&Workspace::find()?, rest)
}

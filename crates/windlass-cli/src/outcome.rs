//! How a command ends: its exit code for the caller. The codes are in `EXIT_CODES`, for
//! `--help`.

use std::fmt;
use std::io;
use std::process::ExitCode;

use windlass::graph::RunResult;
use windlass::graph::compile::CompileError;
use windlass::record::RecordingError;
use windlass::runtime::BuildError;
use windlass::task::JoinError;

use crate::new::NewError;
use crate::terminal::Terminal;

/// What the process ends with after a second Ctrl-C, or if a script was asked to stop and did not
/// catch it.
pub(crate) const INTERRUPTED: u8 = 130;

/// What the process ends with if something did not stop in time. `timeout(1)` ends with the same.
pub(crate) const NOT_STOPPED: u8 = 124;

/// The exit codes, the same for scripts and graphs.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    In order; also: it was told to stop, and ended well
  1    It failed, a file is refused, or the command line makes no sense
  2    graph observe: a file makes no sense
  3    graph observe: an assertion does not hold
  4    graph observe: events could not be collected
  124  Something did not stop in time, and was ended by force or given up; it is named
  130  A second Ctrl-C or SIGTERM; or a script was told to stop, and did not catch it
  n    A script whose main returns the whole number n ends with n modulo 256";

/// How a command ends.
pub(crate) type Outcome = Result<Verdict, Error>;

/// What a command that could do its work found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Everything is in order.
    Fine,
    /// Something is not, and that has been printed.
    Bad,
    /// `graph observe`: the file makes no sense.
    Invalid,
    /// `graph observe`: an assertion does not hold.
    AssertionFailed,
    /// `graph observe`: events could not be collected.
    CollectorFailed,
    /// Something did not stop in time, and that has been printed.
    NotStopped,
    /// `run`: what the script said.
    Code(u8),
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Error {
    /// A file cannot be read.
    Read {
        /// Its name, as given.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file cannot be written.
    Write {
        /// Its name, as given.
        file: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Standard output cannot be written.
    Print(io::Error),
    /// Standard input is to be read for two files.
    StdinTwice,
    /// Signals cannot be heard.
    Signals(io::Error),
    /// There is no runtime.
    Runtime(BuildError),
    /// A graph that was found valid cannot be compiled.
    Compile(CompileError),
    /// The task of a run ended without a result.
    Run(JoinError),
    /// A recording cannot be read.
    Recording(RecordingError),
    /// A recording has no graph file, and none was given.
    NoGraph(String),
    /// A folder is not made.
    New(NewError),
    /// Nothing was measured.
    NoSamples,
    /// `run`: nothing says what kind of file it is.
    UnknownKind(String),
    /// `run`: an option that is for the other kind of file.
    NotForThis {
        /// The option that was given.
        option: &'static str,
        /// What it is for.
        needs: &'static str,
    },
    /// There is no VM.
    Vm(windlass::vm::BuildError),
    /// There is no interpreter.
    Lua(windlass::lua::BuildError),
    /// A script was not started.
    Script(windlass::lua::ScriptError),
    /// A recording of a script failed, or its replay differs.
    Guests(RecordingError),
    /// A folder cannot be watched.
    Watch(io::Error),
}

impl Verdict {
    /// That of a run.
    pub(crate) fn of_run(result: &RunResult) -> Verdict {
        match result.forced.is_empty() {
            true => Verdict::fine_if(result.is_ok()),
            false => Verdict::NotStopped,
        }
    }

    pub(crate) fn fine_if(fine: bool) -> Verdict {
        match fine {
            true => Verdict::Fine,
            false => Verdict::Bad,
        }
    }
}

/// What the process ends with.
pub(crate) fn exit_code(outcome: Outcome, terminal: &Terminal) -> ExitCode {
    match outcome {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::FAILURE,
        Ok(Verdict::Invalid) => ExitCode::from(2),
        Ok(Verdict::AssertionFailed) => ExitCode::from(3),
        Ok(Verdict::CollectorFailed) => ExitCode::from(4),
        Ok(Verdict::NotStopped) => ExitCode::from(NOT_STOPPED),
        Ok(Verdict::Code(code)) => ExitCode::from(code),
        Err(error) => {
            terminal.note(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// What the process ends with if the command line asks for help or makes no sense.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // If standard error is closed, there is no place for the message.
    let _ = error.print();
    match error.use_stderr() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read { file, source } => {
                write!(f, "cannot read {file}: {source}\n{}", read_advice(source))
            }
            Error::Write { file, source } => {
                let advice = "name a file in a folder that exists and that you may write to";
                write!(f, "cannot write {file}: {source}\nhelp: {advice}")
            }
            Error::Print(error) => write!(f, "cannot write to standard output: {error}"),
            Error::StdinTwice => {
                let advice = "save one of them to a file";
                write!(
                    f,
                    "standard input can be only one of the files\nhelp: {advice}"
                )
            }
            Error::Signals(error) => write!(f, "cannot listen to Ctrl-C: {error}"),
            Error::Runtime(error) => write!(f, "cannot start the runtime: {error}"),
            Error::Compile(error) => write!(f, "cannot compile the graph: {error}"),
            Error::Run(error) => write!(f, "the run ended without a result: {error}"),
            Error::Recording(error) => {
                let advice = match error {
                    RecordingError::Truncated { .. } => "\nhelp: --partial replays what is there",
                    _ => "",
                };
                write!(f, "{error}{advice}")
            }
            Error::NoGraph(folder) => write!(
                f,
                "{folder} has no graph.yaml: it was not recorded from a file\nhelp: give one with --graph"
            ),
            Error::New(error) => error.fmt(f),
            Error::UnknownKind(file) => write!(
                f,
                "{file} is neither a script (.lua) nor a graph (.yaml, .yml)\nhelp: give it the ending of what it is"
            ),
            Error::NotForThis { option, needs } => {
                write!(f, "{option} is for {needs}\nhelp: leave it out")
            }
            Error::Vm(error) => error.fmt(f),
            Error::Lua(error) => error.fmt(f),
            Error::Script(error) => error.fmt(f),
            Error::Guests(error) => error.fmt(f),
            Error::Watch(error) => write!(f, "cannot watch the script's folder: {error}"),
            Error::NoSamples => write!(f, "no epoch was measured: the run was stopped too early"),
        }
    }
}

fn read_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "help: check the path, or give `-` to read from standard input",
        io::ErrorKind::IsADirectory => "help: name a file in this folder",
        io::ErrorKind::PermissionDenied => "help: you need the permission to read it",
        _ => "help: give a file that can be read, or `-` for standard input",
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Read { source, .. } | Error::Write { source, .. } => Some(source),
            Error::Print(error) | Error::Signals(error) => Some(error),
            Error::Runtime(error) => Some(error),
            Error::Compile(error) => Some(error),
            Error::Run(error) => Some(error),
            Error::Recording(error) => Some(error),
            Error::New(error) => Some(error),
            Error::Vm(error) => Some(error),
            Error::Lua(error) => Some(error),
            Error::Script(error) => Some(error),
            Error::Guests(error) => Some(error),
            Error::Watch(error) => Some(error),
            Error::StdinTwice
            | Error::NoGraph(_)
            | Error::NoSamples
            | Error::UnknownKind(_)
            | Error::NotForThis { .. } => None,
        }
    }
}

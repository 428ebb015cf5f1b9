//! Why a command ends early, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Every way in which a command fails.
#[derive(Debug)]
pub(crate) enum Error {
    /// Wrong arguments: exit code 2 and the usage text.
    Usage(String),
    /// This program was not started by cargo and not inside the workspace.
    NoWorkspace,
    /// A program could not be started at all.
    Start { program: String, source: io::Error },
    /// A program ended with another code than zero.
    Failed { command: String, status: String },
    /// A program did not end in time and was killed.
    TimedOut { command: String, seconds: u64 },
    /// A tool is not installed.
    Missing {
        tool: &'static str,
        install: &'static str,
    },
    /// Something that only some platforms have.
    Unsupported {
        what: &'static str,
        needs: &'static str,
    },
    /// A file could not be read or written.
    File {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A file that has to be made first.
    Absent {
        file: &'static str,
        advice: &'static str,
    },
    /// Something that should be JSON is not.
    Json {
        what: String,
        source: serde_json::Error,
    },
    /// The JSON is sound but lacks what is needed.
    Shape { what: String, lacks: &'static str },
    /// Cargo built, but not the executable that was asked for.
    NoExecutable { target: String },
    /// A test binary with nothing in it.
    NoModels {
        package: &'static str,
        target: &'static str,
        flags: &'static str,
    },
    /// A model, weakening or step that does not exist, with those that do.
    Unknown {
        kind: &'static str,
        name: String,
        known: Vec<String>,
    },
    /// A page has no place for the table.
    NoMarkers { path: PathBuf },
    /// `xtask/weaken.list` cannot be read.
    List(crate::weaken::ListError),
    /// Callgrind's report has no total.
    NoCount { name: String },
    /// A fuzzer found an input that breaks its target.
    Crash {
        target: &'static str,
        input: PathBuf,
        repeat: String,
    },
    /// Everything has been said already.
    Reported,
    /// A check found something; what it found has been printed.
    Findings {
        check: &'static str,
        count: usize,
        advice: &'static str,
    },
}

impl Error {
    pub(crate) fn usage(problem: impl Into<String>) -> Self {
        Error::Usage(problem.into())
    }

    pub(crate) fn reading(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Error::File {
            doing: "read",
            path: path.into(),
            source,
        }
    }

    pub(crate) fn writing(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        move |source| Error::File {
            doing: "write",
            path: path.into(),
            source,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(problem) => f.write_str(problem),
            Error::NoWorkspace => {
                f.write_str("this is not the workspace; run `cargo xtask` inside the checkout")
            }
            Error::Start { program, source } => {
                write!(
                    f,
                    "cannot start `{program}`: {source}; is it installed and on the PATH?"
                )
            }
            Error::Failed { command, status } => write!(f, "`{command}` failed ({status})"),
            Error::TimedOut { command, seconds } => {
                write!(
                    f,
                    "`{command}` did not end within {seconds} s and was killed"
                )
            }
            Error::Unsupported { what, needs } => write!(f, "{what} needs {needs}"),
            Error::Missing { tool, install } => {
                write!(f, "{tool} is not installed; install it with `{install}`")
            }
            Error::File {
                doing,
                path,
                source,
            } => {
                write!(f, "cannot {doing} {}: {source}", path.display())
            }
            Error::Absent { file, advice } => write!(f, "there is no {file}; {advice}"),
            Error::Json { what, source } => write!(f, "{what} is not the expected JSON: {source}"),
            Error::Shape { what, lacks } => write!(f, "{what} lacks {lacks}"),
            Error::NoExecutable { target } => write!(
                f,
                "cargo built no executable called `{target}`; does a target of that name exist?"
            ),
            Error::NoModels {
                package,
                target,
                flags,
            } => write!(
                f,
                "the test target `{target}` of {package} holds no test under `{flags}`; it checks nothing"
            ),
            Error::Unknown { kind, name, known } => {
                write!(
                    f,
                    "there is no {kind} `{name}`; there are: {}",
                    known.join(", ")
                )
            }
            Error::NoMarkers { path } => write!(
                f,
                "{} has no place for the table; put the lines `{}` and `{}` into it",
                path.display(),
                crate::bench::BEGIN,
                crate::bench::END,
            ),
            Error::List(error) => write!(f, "{error}"),
            Error::NoCount { name } => write!(
                f,
                "callgrind printed no `Collected` line for `{name}`; run the example alone to see why"
            ),
            Error::Crash {
                target,
                input,
                repeat,
            } => write!(
                f,
                "the target `{target}` does not stand {}; repeat it with `{repeat}`",
                input.display()
            ),
            Error::Reported => Ok(()),
            Error::Findings {
                check,
                count,
                advice,
            } => {
                let noun = if *count == 1 { "finding" } else { "findings" };
                write!(f, "{check}: {count} {noun}; {advice}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Start { source, .. } | Error::File { source, .. } => Some(source),
            Error::Json { source, .. } => Some(source),
            Error::List(error) => Some(error),
            _ => None,
        }
    }
}

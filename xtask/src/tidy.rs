//! `cargo xtask tidy`: what the compiler does not check about this workspace.

mod layers;
mod leftovers;
mod links;
mod prose;
mod reachable;
mod unsafe_code;

use std::fmt;

use crate::error::Error;
use crate::text;
use crate::weaken::{self, ListError};
use crate::workspace::Workspace;

/// Lines of Rust past which a file is worth splitting.
const LONG_FILE: usize = 900;

/// One thing that is not tidy, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
enum Problem {
    /// A crate without a place in the layers.
    NoLayer { package: String },
    /// A crate that depends on one beside or above it.
    Upwards { package: String, dependency: String },
    /// A crate other than the facade that uses the facade's macros.
    MacrosElsewhere { package: String, dependency: String },
    /// A crate that names tokio, although a project may replace tokio by us.
    NamesTokio { package: String },
    /// A link to nothing.
    DeadLink {
        file: String,
        line: usize,
        target: String,
    },
    /// A link out of the repository.
    OutsideLink {
        file: String,
        line: usize,
        target: String,
    },
    /// Work that was left for later.
    Leftover {
        file: String,
        line: usize,
        what: &'static str,
    },
    /// ARCHITECTURE.md does not exist.
    NoArchitecture,
    /// A crate that ARCHITECTURE.md does not name.
    NotInArchitecture { package: String },
    /// Unsafe code outside the modules that may hold it.
    Unsafe { file: String, line: usize },
    /// A crate root that does not forbid unsafe code.
    NotForbidden { file: String },
    /// A source file that no module declaration leads to.
    NeverCompiled { file: String },
    /// A doc comment that is no sentence.
    ShortDoc { file: String, line: usize },
    /// A line of a comment or of Markdown that is too wide.
    TooWide { file: String, line: usize },
    /// A weakening that no longer fits the code.
    Weakening(ListError),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NoLayer { package } => write!(
                f,
                "{package}: has no layer; give it one in ARCHITECTURE.md and xtask/src/tidy/layers.rs"
            ),
            Problem::Upwards {
                package,
                dependency,
            } => write!(
                f,
                "{package}: depends on {dependency}, which is not below it; move the code down or turn the dependency round"
            ),
            Problem::MacrosElsewhere {
                package,
                dependency,
            } => {
                write!(
                    f,
                    "{package}: depends on {dependency}, which only the facade may use"
                )
            }
            Problem::NamesTokio { package } => write!(
                f,
                "{package}: depends on tokio, which only {} may: a project that replaces tokio by us would have a cycle",
                layers::KNOWS_TOKIO
            ),
            Problem::DeadLink { file, line, target } => {
                write!(f, "{file}:{line}: the link to `{target}` leads nowhere")
            }
            Problem::OutsideLink { file, line, target } => {
                write!(
                    f,
                    "{file}:{line}: the link to `{target}` leads out of the repository"
                )
            }
            Problem::Leftover { file, line, what } => {
                write!(f, "{file}:{line}: `{what}`; finish it or open an issue")
            }
            Problem::NoArchitecture => f.write_str(
                "ARCHITECTURE.md is missing; it explains the layers and names every crate",
            ),
            Problem::NotInArchitecture { package } => {
                write!(f, "ARCHITECTURE.md: does not name the crate {package}")
            }
            Problem::Unsafe { file, line } => write!(
                f,
                "{file}:{line}: unsafe code outside the modules that may hold it (ARCHITECTURE.md, invariant 3)"
            ),
            Problem::NotForbidden { file } => {
                write!(f, "{file}: this crate root needs #![forbid(unsafe_code)]")
            }
            Problem::NeverCompiled { file } => write!(
                f,
                "{file}: no `mod` leads to it, so it is never compiled; declare it or delete it"
            ),
            Problem::ShortDoc { file, line } => write!(
                f,
                "{file}:{line}: a doc comment of fewer than three words; say what the item does or returns"
            ),
            Problem::TooWide { file, line } => {
                write!(f, "{file}:{line}: over 100 columns; break the line")
            }
            Problem::Weakening(error) => error.fmt(f),
        }
    }
}

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    if !arguments.is_empty() {
        return Err(Error::usage("`tidy` takes no arguments"));
    }
    check(workspace)
}

pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let files = workspace.files()?;
    let metadata = workspace.metadata()?;
    let packages = layers::packages(&metadata, &workspace.root)?;
    let mut problems = layers::check(&packages);
    problems.extend(reachable::check(workspace, &metadata, &files)?);
    problems.extend(architecture(workspace, &packages));

    for file in files.iter().filter(|file| file.ends_with(".md")) {
        let page = workspace.read(file)?;
        problems.extend(links::check(workspace, file, &page));
        problems.extend(prose::check_markdown(file, &page));
    }
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let source = workspace.read(file)?;
        problems.extend(leftovers::check(file, &source));
        problems.extend(unsafe_code::check(file, &source));
        problems.extend(prose::check_rust(file, &source));
        let lines = source.lines().count();
        if lines > LONG_FILE {
            println!("warning: {file}: {lines} lines; over {LONG_FILE}, consider splitting it");
        }
    }
    for root in packages
        .iter()
        .flat_map(|package| package.roots_that_forbid_unsafe())
    {
        problems.extend(unsafe_code::check_root(root, &workspace.read(root)?));
    }

    let weakenings = weaken::check_list(workspace)?;
    problems.extend(weakenings.into_iter().map(Problem::Weakening));

    for problem in &problems {
        println!("{problem}");
    }
    if problems.is_empty() {
        println!("tidy: {} files, {} crates", files.len(), packages.len());
        return Ok(());
    }
    Err(Error::Findings {
        check: "tidy",
        count: problems.len(),
        advice: "each line above says where",
    })
}

/// Every crate has its place on the map.
fn architecture(workspace: &Workspace, packages: &[layers::Package]) -> Vec<Problem> {
    let Ok(page) = workspace.read("ARCHITECTURE.md") else {
        return vec![Problem::NoArchitecture];
    };
    packages
        .iter()
        .filter(|package| !text::has_word(&page, &package.name, true))
        .map(|package| Problem::NotInArchitecture {
            package: package.name.clone(),
        })
        .collect()
}

//! `cargo xtask api`: what the public API of tokio has and ours lacks, or has in another shape.
//!
//! tokio is described by rustdoc, with the features `full` and `test-util`, in the version of our
//! lock file; so are `windlass` and `facade/tokio`. Differences that are meant to be are in a file
//! with their reasons. Every other difference fails the command, and so does a line of the file
//! that no longer stands for one. A new release of tokio shows up as a list.

mod compare;
mod exceptions;
mod library;
mod members;
mod signature;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use self::compare::{Difference, compare};
use self::exceptions::{Exceptions, FILE, PAGE};
use self::library::Library;
use crate::error::Error;
use crate::rustdoc::{self, Crates};
use crate::workspace::{self, Workspace};

/// The libraries that are compared with tokio: how exceptions call them, and their root crates.
const SIDES: &[(&str, &str)] = &[("windlass", "windlass"), ("facade", "tokio")];

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    match arguments {
        [] => check(workspace),
        [all] if all == "--all" => report(workspace, true),
        _ => Err(Error::usage("`api` takes `--all` or nothing")),
    }
}

pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    rustdoc::describe(workspace)?;
    report(workspace, false)
}

/// Prints the differences that no line excepts, or `all` of them.
fn report(workspace: &Workspace, all: bool) -> Result<(), Error> {
    if all {
        rustdoc::describe(workspace)?;
    }
    let tokio = describe_tokio(workspace)?;
    let facade = describe_facade(workspace)?;
    let exceptions = Exceptions::parse(&workspace.read(FILE)?)?;
    let mut findings = exceptions.without_reason(&workspace.read(PAGE)?);
    let mut used = Vec::new();
    for (side, root) in SIDES {
        let crates = Crates::new(workspace).with("tokio", tokio.clone());
        let mut model = Library::read(crates, "tokio", None)?;
        let crates = Crates::new(workspace).with("tokio", facade.clone());
        let own = Library::read(crates, root, Some(&model))?;
        model.merge(&own);
        let mut lines = BTreeSet::new();
        let mut unexpected = Vec::new();
        let differences = compare(&model, &own);
        for difference in &differences {
            let covering = exceptions.covering(side, difference);
            if covering.is_empty() || all {
                unexpected.push(difference);
            }
            lines.extend(covering);
        }
        print(side, &unexpected);
        let count = unexpected.len();
        println!(
            "{side}: {} differences, {count} of them above",
            differences.len()
        );
        findings.extend(unexpected.iter().map(|found| found.subject.clone()));
        used.push((*side, lines));
    }
    let stale = exceptions.stale(&used);
    for line in findings
        .iter()
        .filter(|line| line.starts_with("docs/"))
        .chain(&stale)
    {
        println!("{line}");
    }
    let count = findings.len() + stale.len();
    if count == 0 || all {
        return Ok(());
    }
    Err(Error::Findings {
        check: "api",
        count,
        advice: "make them like tokio's, or add them to facade/tokio-api.exceptions",
    })
}

fn print(side: &str, differences: &[&Difference]) {
    let mut by_kind: BTreeMap<_, Vec<&&Difference>> = BTreeMap::new();
    for difference in differences {
        by_kind.entry(difference.kind).or_default().push(difference);
    }
    for (kind, differences) in by_kind {
        println!("\n{side}, {kind}: {}", differences.len());
        for difference in differences {
            println!("  {}", difference.subject);
            if !difference.detail.is_empty() {
                println!("    tokio: {}", difference.detail);
            }
        }
    }
}

/// Describes the tokio of our lock file; returns where the description is.
fn describe_tokio(workspace: &Workspace) -> Result<PathBuf, Error> {
    let target = workspace.target.join("api");
    let folder = target.join("tokio");
    let source = folder.join("src");
    fs::create_dir_all(&source).map_err(Error::writing(&source))?;
    let lock = workspace.read("Cargo.lock")?;
    let version = locked(&lock, "tokio").ok_or(Error::Shape {
        what: "Cargo.lock".to_owned(),
        lacks: "the package tokio",
    })?;
    let manifest = format!(
        "[workspace]\n[package]\nname = \"api\"\nedition = \"2024\"\n[dependencies.tokio]\n\
         version = \"={version}\"\nfeatures = [\"full\", \"test-util\"]\n"
    );
    for (file, text) in [("Cargo.toml", manifest.as_str()), ("src/lib.rs", "")] {
        let path = folder.join(file);
        // A file that is as it was is not written: cargo would take it for a change.
        if fs::read_to_string(&path).is_ok_and(|known| known == text) {
            continue;
        }
        fs::write(&path, text).map_err(Error::writing(path))?;
    }
    let mut cargo = workspace::cargo_in(&folder);
    cargo.args(["doc", "--quiet", "--no-deps", "--package", "tokio"]);
    rustdoc::describe_with(cargo.arg("--target-dir").arg(&target))?;
    Ok(target.join("doc/tokio.json"))
}

/// Describes `facade/tokio`; returns where the description is.
fn describe_facade(workspace: &Workspace) -> Result<PathBuf, Error> {
    let target = workspace.target.join("facade");
    let mut cargo = workspace::cargo_in(&workspace.path("facade"));
    cargo.args(["doc", "--quiet", "--no-deps", "--package", "tokio"]);
    rustdoc::describe_with(cargo.arg("--target-dir").arg(&target))?;
    Ok(target.join("doc/tokio.json"))
}

/// Returns the version of a package in a lock file.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines
        .nth(1)?
        .strip_prefix("version = \"")?
        .strip_suffix('"')
}

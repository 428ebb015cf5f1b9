//! `cargo xtask surface`: the public names of the facade, each of which has one path.
//!
//! rustdoc describes every crate as JSON. The walk begins at the root of `windlass` and follows
//! re-exports into the other crates of the workspace, so that it sees what a user can write. An
//! item that can be written in two ways is a finding, except that the root may re-export a few
//! names that are at home in a module.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::rustdoc::{self, Crates, Public};
use crate::workspace::Workspace;

const FACADE: &str = "windlass";
/// Names that the root has beside its modules, at most.
const ROOT_NAMES: usize = 15;
/// Modules whose items may share types: mpsc and mpmc have one sender, and all channels one family
/// of errors.
const SHARED_BELOW: &str = "windlass::sync::";
/// Pairs of modules of which tokio has the same item in both, so that ported code finds it there.
const SAME_IN_TOKIO: &[[&str; 2]] = &[["windlass::task::", "windlass::task::coop::"]];

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    match arguments {
        [] => check(workspace),
        [list] if list == "--list" => {
            for path in public(workspace)?.paths() {
                println!("{path}");
            }
            Ok(())
        }
        _ => Err(Error::usage("`surface` takes `--list` or nothing")),
    }
}

pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let public = public(workspace)?;
    let findings = findings(&public);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("surface: {} items, one path each", public.items.len());
        return Ok(());
    }
    Err(Error::Findings {
        check: "surface",
        count: findings.len(),
        advice: "keep one of the paths of each",
    })
}

/// The public items of `windlass`.
fn public(workspace: &Workspace) -> Result<Public, Error> {
    rustdoc::describe(workspace)?;
    Public::of(&mut Crates::new(workspace), FACADE)
}

fn findings(public: &Public) -> Vec<String> {
    let mut findings: Vec<String> = public
        .items
        .values()
        .filter(|paths| has_two_homes(paths))
        .map(|paths| {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            format!("{}: the same item", paths.join(", "))
        })
        .collect();
    let root: BTreeSet<&str> = public
        .paths()
        .into_iter()
        .filter(|p| is_in_root(p))
        .collect();
    if root.len() > ROOT_NAMES {
        let (count, names) = (root.len(), Vec::from_iter(root).join(", "));
        findings.push(format!(
            "the root has {count} names, {ROOT_NAMES} at most: {names}"
        ));
    }
    findings
}

fn has_two_homes(paths: &BTreeSet<String>) -> bool {
    let homes = || paths.iter().filter(|path| !is_in_root(path));
    let module = |path: &str| path.rfind("::").map_or(0, |end| end + 2);
    let in_tokio = |pair: &[&str; 2]| homes().all(|path| pair.contains(&&path[..module(path)]));
    homes().count() > 1
        && !homes().all(|path| path.starts_with(SHARED_BELOW))
        && !SAME_IN_TOKIO.iter().any(in_tokio)
}

fn is_in_root(path: &str) -> bool {
    path.matches("::").count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(items: &[(&str, &[&str])]) -> Public {
        let items = items.iter().map(|(definition, paths)| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            ((*definition).to_owned(), paths)
        });
        Public {
            items: items.collect(),
        }
    }

    #[test]
    fn two_paths_are_a_finding_unless_one_is_in_the_root() {
        let twice = surface(&[("a::B", &["windlass::x::B", "windlass::y::B"])]);
        assert_eq!(
            findings(&twice),
            ["windlass::x::B, windlass::y::B: the same item"]
        );
        let root = surface(&[("a::spawn", &["windlass::spawn", "windlass::task::spawn"])]);
        assert!(findings(&root).is_empty());
        let channels = [
            "windlass::sync::mpmc::Sender",
            "windlass::sync::mpsc::Sender",
        ];
        assert!(findings(&surface(&[("a::Sender", &channels)])).is_empty());
    }

    #[test]
    fn a_root_with_too_many_names_is_a_finding() {
        let paths: Vec<String> = (0..=ROOT_NAMES)
            .map(|i| format!("windlass::n{i}"))
            .collect();
        let items: Vec<(&str, [&str; 1])> = paths.iter().map(|p| (&**p, [&**p])).collect();
        let items: Vec<(&str, &[&str])> = items.iter().map(|(d, p)| (*d, &p[..])).collect();
        assert_eq!(findings(&surface(&items)).len(), 1);
        assert!(findings(&surface(&items[1..])).is_empty());
    }
}

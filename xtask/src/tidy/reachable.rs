//! Every source file is compiled: some `mod` leads to it from the root of a target.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Problem;
use crate::error::Error;
use crate::text;
use crate::workspace::Workspace;

/// Packages outside of the workspace, whose roots cargo does not tell: a directory, and where the
/// roots of its targets are.
const APART: &[(&str, &str)] = &[
    ("bench/src/main.rs", ""),
    ("facade/programs/", "main.rs"),
    ("facade/tokio/src/lib.rs", ""),
    ("fuzz/fuzz_targets/", ".rs"),
];

/// Finds the tracked source files that no target's modules lead to.
pub(super) fn check(
    workspace: &Workspace,
    metadata: &Value,
    files: &[String],
) -> Result<Vec<Problem>, Error> {
    let sources: BTreeSet<&str> = files
        .iter()
        .map(String::as_str)
        .filter(|file| file.ends_with(".rs"))
        .collect();
    let mut reached = BTreeSet::new();
    let mut waiting = roots(workspace, metadata, &sources);
    while let Some(file) = waiting.pop() {
        let is_new = sources.contains(file.as_str()) && reached.insert(file.clone());
        if is_new {
            waiting.extend(modules_of(&file, &workspace.read(&file)?));
        }
    }
    let lost = sources.iter().filter(|file| !reached.contains(**file));
    Ok(lost
        .map(|file| Problem::NeverCompiled {
            file: (*file).to_owned(),
        })
        .collect())
}

/// The root file of every target.
fn roots(workspace: &Workspace, metadata: &Value, sources: &BTreeSet<&str>) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let paths = targets.filter_map(|target| target["src_path"].as_str());
    let below = |path: &str| {
        let relative = std::path::Path::new(path)
            .strip_prefix(&workspace.root)
            .ok()?;
        Some(joined("", &relative.to_string_lossy()))
    };
    let mut roots: Vec<String> = paths.filter_map(below).collect();
    let is_apart = |file: &&&str| {
        APART
            .iter()
            .any(|(start, end)| file.starts_with(start) && file.ends_with(end))
    };
    roots.extend(
        sources
            .iter()
            .filter(is_apart)
            .map(|file| (*file).to_owned()),
    );
    roots
}

/// The files in which the modules of a file may lie: each `mod name;` names two, one of which
/// exists.
fn modules_of(file: &str, source: &str) -> Vec<String> {
    let (dir, name) = file.rsplit_once('/').unwrap_or(("", file));
    let stem = name.trim_end_matches(".rs");
    let owns_dir = matches!(stem, "lib" | "main" | "mod") || is_root_of_target(dir);
    let inside = if owns_dir {
        dir.to_owned()
    } else {
        format!("{dir}/{stem}")
    };
    let mut modules = Vec::new();
    let code = text::code_only(source);
    for (start, _) in code.match_indices("mod ") {
        let starts_word = !code[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let rest = code[start + "mod ".len()..].trim_start();
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if starts_word && end > 0 && rest[end..].trim_start().starts_with(';') {
            let module = &rest[..end];
            modules.push(format!("{inside}/{module}.rs"));
            modules.push(format!("{inside}/{module}/mod.rs"));
        }
    }
    // `#[path = "..."]` and `include!("...")` name files outright; `code_only` has no strings.
    for mark in ["#[path = \"", "include!(\""] {
        for (start, _) in source.match_indices(mark) {
            let rest = &source[start + mark.len()..];
            if let Some((path, _)) = rest.split_once('"') {
                modules.push(joined(dir, path));
                modules.push(joined(&inside, path));
            }
        }
    }
    modules
}

/// Roots such as `tests/fork.rs` and `examples/chat.rs` have their modules beside them.
fn is_root_of_target(dir: &str) -> bool {
    matches!(
        dir.rsplit('/').next(),
        Some("tests" | "examples" | "benches" | "bin" | "fuzz_targets")
    )
}

/// A path relative to a directory, without its dots.
fn joined(dir: &str, path: &str) -> String {
    let mut parts: Vec<&str> = dir.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_lies_beside_a_root_and_below_any_other_file() {
        let both = |dir: &str| vec![format!("{dir}/ring.rs"), format!("{dir}/ring/mod.rs")];
        assert_eq!(modules_of("a/src/lib.rs", "mod ring;"), both("a/src"));
        assert_eq!(
            modules_of("a/src/queue/mod.rs", "pub mod ring;"),
            both("a/src/queue")
        );
        assert_eq!(
            modules_of("a/src/queue.rs", "pub(crate) mod ring ;"),
            both("a/src/queue")
        );
        assert_eq!(modules_of("a/tests/it.rs", "mod ring;"), both("a/tests"));
    }

    #[test]
    fn inline_modules_and_comments_are_none() {
        for source in [
            "mod ring { }",
            "// mod ring;",
            "let a = \"mod ring;\";",
            "modring;",
        ] {
            assert!(modules_of("a/src/lib.rs", source).is_empty(), "{source}");
        }
    }

    #[test]
    fn a_path_that_is_written_out_counts() {
        let found = modules_of(
            "a/src/lib.rs",
            "#[path = \"../tests/support.rs\"] mod support;",
        );
        assert!(
            found.contains(&"a/tests/support.rs".to_owned()),
            "{found:?}"
        );
    }
}

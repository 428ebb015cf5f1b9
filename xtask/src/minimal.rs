//! `cargo xtask minimal`: the lowest versions of dependencies that the manifests of the runtime's
//! crates allow are enough, and none of them is above what tokio asks for.
//!
//! A project that puts the facade in tokio's place gets our bounds instead of tokio's, and its
//! lockfile may hold versions that only tokio's allow.
//!
//! The manifests are copied without their development dependencies, which have bounds of their own,
//! and so is the lockfile that the lowest versions go into: the checkout keeps its own. All
//! versions are lowered, not only those of direct dependencies: mio needs a newer libc than tokio
//! and we do, and cargo refuses to lower direct ones only where that is so. The crates below mio
//! are therefore checked alone, too.

use std::cmp::Ordering;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::folder_copy::FolderCopy;
use crate::process;
use crate::workspace::{self, Workspace};

/// The crates that the facade is made of; those that come first are checked without the others.
const PACKAGES: &[&str] = &[
    "windlass-core",
    "windlass-sync",
    "windlass-runtime",
    "windlass-io",
];
const WITHOUT_MIO: usize = 2;

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    match arguments {
        [] => check(workspace),
        _ => Err(Error::usage("`minimal` takes no arguments")),
    }
}

pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    compare(workspace)?;
    compile(workspace, "below-mio", &PACKAGES[..WITHOUT_MIO])?;
    compile(workspace, "all", PACKAGES)
}

// ---- bounds ----

/// A version that a bound begins with.
type Version = Vec<u64>;

/// Compares the bounds with those of the tokio in the lockfile.
fn compare(workspace: &Workspace) -> Result<(), Error> {
    let metadata = workspace.whole_metadata()?;
    let tokio = dependencies(&metadata, "tokio")?;
    let mut higher = 0;
    let mut compared = 0;
    for package in PACKAGES {
        for (name, bound) in dependencies(&metadata, package)? {
            let theirs = tokio.iter().filter(|(known, _)| *known == name);
            for (_, allowed) in theirs {
                compared += 1;
                if lowest(&bound).cmp(&lowest(allowed)) == Ordering::Greater {
                    higher += 1;
                    println!("{package} asks for {name} {bound}, tokio for {allowed}");
                }
            }
        }
    }
    match (higher, compared) {
        (0, 0) => Err(Error::Shape {
            what: "cargo metadata".to_owned(),
            lacks: "dependencies that tokio and we share",
        }),
        (0, _) => {
            println!("minimal: {compared} bounds, none above tokio's");
            Ok(())
        }
        (count, _) => Err(Error::Findings {
            check: "minimal",
            count,
            advice: "lower the bound in Cargo.toml, or do without what is new in that version",
        }),
    }
}

/// The names and bounds of what a package depends on to be built. What only an unstable tokio needs
/// does not count.
fn dependencies(metadata: &Value, package: &str) -> Result<Vec<(String, String)>, Error> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.into_iter().find(|known| known["name"] == package);
    let listed = found.and_then(|package| package["dependencies"].as_array());
    let Some(listed) = listed else {
        return Err(Error::Shape {
            what: format!("the metadata of {package}"),
            lacks: "its dependencies",
        });
    };
    Ok(listed
        .iter()
        .filter(|dependency| dependency["kind"].is_null())
        .filter(|dependency| {
            let target = dependency["target"].as_str();
            !target.is_some_and(|target| target.contains("tokio_unstable"))
        })
        .filter_map(|dependency| {
            let name = dependency["name"].as_str()?;
            let bound = dependency["req"].as_str()?;
            Some((name.to_owned(), bound.to_owned()))
        })
        .collect())
}

/// The lowest version that a bound such as `^1.2.3` allows.
fn lowest(bound: &str) -> Version {
    let digits = bound.trim_start_matches(|c: char| !c.is_ascii_digit());
    let first = digits.split([',', ' ', '-', '+']).next().unwrap_or(digits);
    let mut version: Version = first.split('.').map_while(|n| n.parse().ok()).collect();
    version.resize(3, 0);
    version
}

// ---- compiling ----

/// Compiles packages with the lowest versions of everything.
fn compile(workspace: &Workspace, name: &str, packages: &[&str]) -> Result<(), Error> {
    let mut files = vec![("Cargo.toml".to_owned(), root_manifest(workspace, packages)?)];
    for file in workspace.files()? {
        let path = file.strip_prefix("crates/").unwrap_or_default();
        let Some((package, inside)) = path.split_once('/') else {
            continue;
        };
        if !packages.contains(&package) {
            continue;
        }
        if inside == "Cargo.toml" {
            let manifest = without_tests(&workspace.read(&file)?);
            files.push((file, manifest.into_bytes()));
        } else if inside.starts_with("src/") {
            let content = fs::read(workspace.path(&file)).map_err(Error::reading(&file))?;
            files.push((file, content));
        }
    }
    let folder = workspace.target.join("minimal").join(name);
    let copy = FolderCopy::of(folder.join("src"), &files)?;
    let cargo = || -> Command {
        let mut cargo = workspace::cargo_in(&copy.root);
        // The choice of versions is an unstable flag of the stable cargo.
        cargo.env("RUSTC_BOOTSTRAP", "1");
        cargo
    };
    process::run(cargo().args(["update", "--quiet", "-Z", "minimal-versions"]))?;
    println!("with the lowest versions: {}", packages.join(", "));
    process::run(
        cargo()
            .args(["check", "--workspace", "--all-features", "--target-dir"])
            .arg(folder.join("target")),
    )
}

/// The manifest of the workspace with other members.
fn root_manifest(workspace: &Workspace, packages: &[&str]) -> Result<Vec<u8>, Error> {
    let manifest = workspace.read("Cargo.toml")?;
    let is_members = |line: &&str| line.starts_with("members = [") && line.ends_with(']');
    let Some(old) = manifest.lines().find(is_members) else {
        return Err(Error::Shape {
            what: "Cargo.toml".to_owned(),
            lacks: "the list of members on one line, which `xtask/src/minimal.rs` replaces",
        });
    };
    let members: Vec<String> = packages.iter().map(|p| format!("\"crates/{p}\"")).collect();
    let members = format!("members = [{}]", members.join(", "));
    Ok(manifest.replace(old, &members).into_bytes())
}

/// A manifest without the tables of tests, examples, model checkers and what they depend on.
fn without_tests(manifest: &str) -> String {
    let mut kept = String::new();
    let mut keeps = true;
    for line in manifest.lines() {
        if line.starts_with('[') {
            let of_checker = line.contains("windlass_loom") || line.contains("windlass_shuttle");
            keeps = !line.contains("dev-dependencies") && !of_checker && !line.starts_with("[[");
        }
        if keeps {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_compared_by_number() {
        assert!(lowest("^0.2.9") < lowest("^0.2.168"));
        assert!(lowest("~2.7.0") > lowest("2.6"));
        assert_eq!(lowest("^1"), [1, 0, 0]);
        assert_eq!(lowest("= 0.1.0-beta.1"), [0, 1, 0]);
        assert_eq!(lowest(">=1.2, <3"), [1, 2, 0]);
    }

    #[test]
    fn what_only_tests_need_is_left_out() {
        let manifest = "[package]\nname = \"a\"\n[[test]]\nname = \"it\"\n[dependencies]\nb = \"1\"\n\
                        [target.'cfg(x)'.dev-dependencies]\nc = \"1\"\n[lints]\nworkspace = true\n";
        assert_eq!(
            without_tests(manifest),
            "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n[lints]\nworkspace = true\n"
        );
    }
}

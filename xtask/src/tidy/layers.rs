//! Each crate sees only those below it.

use std::path::Path;

use serde_json::Value;

use super::Problem;
use crate::error::Error;

/// The cake. A crate may depend on the crates of lower layers only.
const LAYERS: &[(&str, u8)] = &[
    ("windlass-core", 0),
    ("windlass-sync", 1),
    ("windlass-value", 1),
    ("windlass-record", 1),
    ("windlass-plan", 2),
    ("windlass-runtime", 2),
    ("windlass-macros", 2),
    ("windlass-io", 3),
    ("windlass-http", 4),
    ("windlass-tokio-guest", 4),
    ("windlass-actor", 4),
    ("windlass-graph", 4),
    ("windlass-components", 5),
    ("windlass-vm", 5),
    ("windlass-lua", 6),
    ("windlass", 7),
    ("windlass-cli", 8),
    ("windlass-renamed", 8),
];
/// Outside the cake: it may use anything, and nothing may use it.
const OUTSIDE: &str = "xtask";
/// Used by the facade, which re-exports what they expand to, and by nothing else.
const MACROS: &str = "windlass-macros";
const FACADE: &str = "windlass";
/// Crates whose unsafe code is checked file by file instead of forbidden at the root.
const PARTLY_UNSAFE: &[&str] = &[
    "windlass-core",
    "windlass-sync",
    "windlass-runtime",
    "windlass-io",
    "windlass-lua",
];

/// The one crate that may depend on tokio, also by an optional dependency.
pub(super) const KNOWS_TOKIO: &str = "windlass-tokio-guest";

/// What the checks need to know about a package of the workspace.
#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) name: String,
    /// What it is built from; what only its tests use does not count.
    dependencies: Vec<String>,
    /// The root files of its library and its programs, relative to the workspace.
    roots: Vec<String>,
}

impl Package {
    /// The roots that have to say `forbid(unsafe_code)`.
    pub(super) fn roots_that_forbid_unsafe(&self) -> impl Iterator<Item = &str> {
        let forbids = !PARTLY_UNSAFE.contains(&self.name.as_str());
        self.roots
            .iter()
            .map(String::as_str)
            .filter(move |_| forbids)
    }
}

/// Reads the packages from cargo's metadata.
pub(super) fn packages(metadata: &Value, root: &Path) -> Result<Vec<Package>, Error> {
    let lacks = |lacks| Error::Shape {
        what: "cargo metadata".to_owned(),
        lacks,
    };
    let packages = metadata["packages"]
        .as_array()
        .ok_or_else(|| lacks("packages"))?;
    packages
        .iter()
        .map(|package| {
            let name = package["name"]
                .as_str()
                .ok_or_else(|| lacks("a package's name"))?;
            let dependencies = package["dependencies"]
                .as_array()
                .ok_or_else(|| lacks("dependencies"))?;
            let targets = package["targets"]
                .as_array()
                .ok_or_else(|| lacks("targets"))?;
            Ok(Package {
                name: name.to_owned(),
                dependencies: dependencies
                    .iter()
                    .filter(|dependency| dependency["kind"] != "dev")
                    .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
                    .collect(),
                roots: targets
                    .iter()
                    .filter(|target| is_product(target))
                    .filter_map(|target| target["src_path"].as_str())
                    .filter_map(|path| Path::new(path).strip_prefix(root).ok())
                    .map(|path| path.to_string_lossy().into_owned())
                    .collect(),
            })
        })
        .collect()
}

/// A library or program, as opposed to a test, an example, a benchmark or a build script.
fn is_product(target: &Value) -> bool {
    let kinds = target["kind"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    kinds.iter().any(|kind| {
        ["lib", "rlib", "proc-macro", "bin", "cdylib"]
            .iter()
            .any(|k| kind == k)
    })
}

/// Checks every dependency between crates of the workspace.
pub(super) fn check(packages: &[Package]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for package in packages {
        let layer = layer(&package.name);
        if layer.is_none() && package.name != OUTSIDE {
            problems.push(Problem::NoLayer {
                package: package.name.clone(),
            });
            continue;
        }
        if package.dependencies.iter().any(|it| it == "tokio") && package.name != KNOWS_TOKIO {
            problems.push(Problem::NamesTokio {
                package: package.name.clone(),
            });
        }
        for dependency in &package.dependencies {
            if !packages.iter().any(|other| other.name == *dependency) {
                continue;
            }
            let (package, dependency) = (package.name.clone(), dependency.clone());
            if dependency == MACROS && package != FACADE && package != OUTSIDE {
                problems.push(Problem::MacrosElsewhere {
                    package,
                    dependency,
                });
            } else if let Some(layer) = layer
                && self::layer(&dependency).is_none_or(|below| below >= layer)
            {
                problems.push(Problem::Upwards {
                    package,
                    dependency,
                });
            }
        }
    }
    problems
}

fn layer(name: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(package, _)| *package == name)
        .map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(edges: &[(&str, &[&str])]) -> Vec<Package> {
        let package = |(name, dependencies): &(&str, &[&str])| Package {
            name: (*name).to_owned(),
            dependencies: dependencies.iter().map(|d| (*d).to_owned()).collect(),
            roots: Vec::new(),
        };
        edges.iter().map(package).collect()
    }

    #[test]
    fn downwards_and_foreign_dependencies_are_fine() {
        let packages = workspace(&[
            ("windlass-core", &["libc"]),
            ("windlass-runtime", &["windlass-core"]),
            ("windlass-macros", &["syn"]),
            (
                "windlass",
                &["windlass-core", "windlass-runtime", "windlass-macros"],
            ),
            ("xtask", &["windlass", "serde_json"]),
        ]);
        assert_eq!(check(&packages), []);
    }

    #[test]
    fn one_crate_only_may_name_tokio() {
        let packages = workspace(&[
            ("windlass-io", &["tokio"]),
            ("windlass-tokio-guest", &["tokio"]),
        ]);
        let package = "windlass-io".to_owned();
        assert_eq!(check(&packages), [Problem::NamesTokio { package }]);
    }

    #[test]
    fn upwards_and_sideways_dependencies_are_not() {
        let packages = workspace(&[
            ("windlass-core", &["windlass-runtime"]),
            ("windlass-runtime", &["windlass-macros", "xtask"]),
            ("windlass-macros", &[]),
            ("windlass-actor", &["windlass-graph"]),
            ("windlass-graph", &[]),
            ("windlass-new", &[]),
            ("xtask", &[]),
        ]);
        let upwards = |package: &str, dependency: &str| Problem::Upwards {
            package: package.to_owned(),
            dependency: dependency.to_owned(),
        };
        let expected = [
            upwards("windlass-core", "windlass-runtime"),
            Problem::MacrosElsewhere {
                package: "windlass-runtime".to_owned(),
                dependency: "windlass-macros".to_owned(),
            },
            upwards("windlass-runtime", "xtask"),
            upwards("windlass-actor", "windlass-graph"),
            Problem::NoLayer {
                package: "windlass-new".to_owned(),
            },
        ];
        assert_eq!(check(&packages), expected);
    }

    #[test]
    fn dev_dependencies_and_test_targets_do_not_count() {
        let metadata = serde_json::json!({ "packages": [{
            "name": "windlass-core",
            "dependencies": [
                { "name": "windlass", "kind": "dev" },
                { "name": "libc", "kind": null },
                { "name": "cc", "kind": "build" },
            ],
            "targets": [
                { "kind": ["lib"], "src_path": "/w/crates/windlass-core/src/lib.rs" },
                { "kind": ["test"], "src_path": "/w/crates/windlass-core/tests/it/main.rs" },
            ],
        }] });
        let packages = packages(&metadata, Path::new("/w")).unwrap();
        assert_eq!(packages[0].dependencies, ["libc", "cc"]);
        assert_eq!(packages[0].roots, ["crates/windlass-core/src/lib.rs"]);
        assert_eq!(packages[0].roots_that_forbid_unsafe().count(), 0);
    }
}

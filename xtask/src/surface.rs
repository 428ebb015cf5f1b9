//! `cargo xtask surface`: the public names of the facade, each of which has one path.
//!
//! rustdoc describes every crate as JSON. The walk begins at the root of `windlass` and follows
//! re-exports into the other crates of the workspace, so that it sees what a user can write. An
//! item that can be written in two ways is a finding, except that the root may re-export a few
//! names that are at home in a module.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;

use serde_json::Value;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

const FACADE: &str = "windlass";
/// Names that the root has beside its modules, at most.
const ROOT_NAMES: usize = 15;
/// Modules whose items may share types: mpsc and mpmc have one sender, and all channels one family
/// of errors.
const SHARED_BELOW: &str = "windlass::sync::";
/// Pairs of modules of which tokio has the same item in both, so that ported code finds it there.
const SAME_IN_TOKIO: &[[&str; 2]] = &[["windlass::task::", "windlass::task::coop::"]];
/// What is counted: kinds of items in rustdoc's words.
const KINDS: &[&str] = &[
    "struct",
    "enum",
    "union",
    "trait",
    "function",
    "type_alias",
    "constant",
    "static",
    "macro",
    "proc_macro",
];

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    match arguments {
        [] => check(workspace),
        [list] if list == "--list" => {
            for path in Surface::of(workspace)?.paths() {
                println!("{path}");
            }
            Ok(())
        }
        _ => Err(Error::usage("`surface` takes `--list` or nothing")),
    }
}

pub(crate) fn check(workspace: &Workspace) -> Result<(), Error> {
    let surface = Surface::of(workspace)?;
    let findings = surface.findings();
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("surface: {} items, one path each", surface.items.len());
        return Ok(());
    }
    Err(Error::Findings {
        check: "surface",
        count: findings.len(),
        advice: "keep one of the paths of each",
    })
}

/// Every public item by where it is defined, with all paths that lead to it.
#[derive(Debug, Default)]
struct Surface {
    items: BTreeMap<String, BTreeSet<String>>,
}

impl Surface {
    fn of(workspace: &Workspace) -> Result<Surface, Error> {
        describe(workspace)?;
        let mut walk = Walk {
            crates: Crates::new(workspace),
            surface: Surface::default(),
            modules: Vec::new(),
        };
        let root = walk.crates.get(FACADE)?.map(Description::root);
        if let Some(root) = root {
            walk.module(FACADE, &root, FACADE)?;
        }
        if walk.surface.items.is_empty() {
            return Err(Error::Shape {
                what: "rustdoc's description of windlass".to_owned(),
                lacks: "items",
            });
        }
        Ok(walk.surface)
    }

    fn paths(&self) -> BTreeSet<&str> {
        self.items.values().flatten().map(String::as_str).collect()
    }

    fn findings(&self) -> Vec<String> {
        let mut findings: Vec<String> = self
            .items
            .values()
            .filter(|paths| has_two_homes(paths))
            .map(|paths| {
                let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                format!("{}: the same item", paths.join(", "))
            })
            .collect();
        let root: BTreeSet<&str> = self.paths().into_iter().filter(|p| is_in_root(p)).collect();
        if root.len() > ROOT_NAMES {
            let (count, names) = (root.len(), Vec::from_iter(root).join(", "));
            findings.push(format!(
                "the root has {count} names, {ROOT_NAMES} at most: {names}"
            ));
        }
        findings
    }
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

/// Lets rustdoc describe every library of the workspace.
fn describe(workspace: &Workspace) -> Result<(), Error> {
    let mut cargo = workspace.cargo();
    cargo
        .args(["doc", "--quiet", "--workspace", "--no-deps"])
        .args(["--all-features", "--lib"])
        .args(["--exclude", "xtask", "--exclude", "windlass-cli"])
        // The JSON is an unstable output of the stable tool.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTDOCFLAGS", "-Zunstable-options --output-format json");
    process::run(&mut cargo)
}

/// The descriptions that were needed so far, by the names of their crates.
struct Crates<'a> {
    workspace: &'a Workspace,
    read: HashMap<String, Option<Description>>,
}

impl Crates<'_> {
    fn new(workspace: &Workspace) -> Crates<'_> {
        Crates {
            workspace,
            read: HashMap::new(),
        }
    }

    /// The description of a crate; none if it is not one of the workspace.
    fn get(&mut self, name: &str) -> Result<Option<&Description>, Error> {
        if !self.read.contains_key(name) {
            let path = self.workspace.target.join(format!("doc/{name}.json"));
            let is_own = name == FACADE || name.starts_with("windlass_");
            let description = match is_own {
                true => {
                    let text = fs::read_to_string(&path).map_err(Error::reading(&path))?;
                    Some(Description::parse(name, &text)?)
                }
                false => None,
            };
            self.read.insert(name.to_owned(), description);
        }
        Ok(self.read.get(name).and_then(Option::as_ref))
    }
}

/// What rustdoc says about one crate.
struct Description {
    json: Value,
    /// The ids of the crate's own items by their full paths.
    ids: HashMap<String, String>,
}

impl Description {
    fn parse(name: &str, text: &str) -> Result<Description, Error> {
        let json: Value = serde_json::from_str(text).map_err(|source| Error::Json {
            what: format!("rustdoc's description of {name}"),
            source,
        })?;
        let paths = json["paths"].as_object().into_iter().flatten();
        let own = paths.filter(|(_, path)| path["crate_id"] == 0);
        let ids = own
            .map(|(id, path)| (full_path(path), id.clone()))
            .collect();
        Ok(Description { json, ids })
    }

    fn root(&self) -> String {
        id_of(&self.json["root"])
    }

    fn item(&self, id: &str) -> Option<&Value> {
        self.json["index"].get(id)
    }

    /// Where an item is defined, also one of another crate.
    fn definition(&self, id: &str) -> Option<String> {
        self.json["paths"].get(id).map(full_path)
    }
}

fn full_path(path: &Value) -> String {
    let parts = path["path"].as_array().into_iter().flatten();
    Vec::from_iter(parts.filter_map(Value::as_str)).join("::")
}

/// Ids are numbers in values and text in keys.
fn id_of(value: &Value) -> String {
    match value {
        Value::String(id) => id.clone(),
        other => other.to_string(),
    }
}

/// What an item is, in rustdoc's word, and its description.
fn kind_of(item: &Value) -> Option<(&str, &Value)> {
    let (kind, inner) = item["inner"].as_object()?.iter().next()?;
    Some((kind, inner))
}

struct Walk<'a> {
    crates: Crates<'a>,
    surface: Surface,
    /// The modules that the walk is inside of: two may re-export each other.
    modules: Vec<(String, String)>,
}

/// An entry of a module: a name, and what it stands for.
enum Found {
    Item {
        name: String,
        definition: String,
    },
    Module {
        name: Option<String>,
        id: String,
    },
    /// Something of another crate; `None` for all that is in it.
    Foreign {
        name: Option<String>,
        definition: String,
    },
}

impl Walk<'_> {
    /// Adds what is public in a module that users see as `path`.
    fn module(&mut self, krate: &str, id: &str, path: &str) -> Result<(), Error> {
        let here = (krate.to_owned(), id.to_owned());
        if self.modules.contains(&here) {
            return Ok(());
        }
        let found = match self.crates.get(krate)? {
            Some(description) => entries(description, id),
            None => return Ok(()),
        };
        self.modules.push(here);
        for entry in found {
            self.entry(krate, path, entry)?;
        }
        self.modules.pop();
        Ok(())
    }

    fn entry(&mut self, krate: &str, path: &str, entry: Found) -> Result<(), Error> {
        match entry {
            Found::Item { name, definition } => self.add(path, &name, definition),
            Found::Module { name, id } => self.module(krate, &id, &below(path, name.as_deref()))?,
            Found::Foreign { name, definition } => {
                let owner = definition.split("::").next().unwrap_or_default().to_owned();
                let theirs = self.crates.get(&owner)?;
                let id = theirs.and_then(|theirs| theirs.ids.get(&definition).cloned());
                let item = theirs.zip(id.as_deref()).and_then(|(all, id)| all.item(id));
                match (item.and_then(kind_of), id, name) {
                    (Some(("module", _)), Some(id), name) => {
                        self.module(&owner, &id, &below(path, name.as_deref()))?;
                    }
                    (_, _, Some(name)) => self.add(path, &name, definition),
                    (_, _, None) => {}
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str, name: &str, definition: String) {
        let paths = self.surface.items.entry(definition).or_default();
        paths.insert(below(path, Some(name)));
    }
}

fn below(path: &str, name: Option<&str>) -> String {
    name.map_or_else(|| path.to_owned(), |name| format!("{path}::{name}"))
}

/// The public entries of a module. What is hidden from the documentation is not in them.
fn entries(description: &Description, module: &str) -> Vec<Found> {
    let items = description
        .item(module)
        .map(|item| &item["inner"]["module"]["items"]);
    let ids = items.and_then(Value::as_array).into_iter().flatten();
    let found = ids.filter_map(|id| {
        let id = id_of(id);
        let item = description.item(&id)?;
        let (kind, inner) = kind_of(item)?;
        let name = item["name"].as_str().map(str::to_owned);
        match kind {
            "use" => (item["visibility"] == "public").then(|| re_export(description, inner))?,
            "module" => Some(Found::Module { name, id }),
            kind if KINDS.contains(&kind) => Some(Found::Item {
                definition: description.definition(&id)?,
                name: name?,
            }),
            _ => None,
        }
    });
    found.collect()
}

fn re_export(description: &Description, inner: &Value) -> Option<Found> {
    let id = id_of(&inner["id"]);
    let is_glob = inner["is_glob"] == true;
    let name = inner["name"].as_str().map(str::to_owned);
    let name = name.filter(|_| !is_glob);
    match description.item(&id).and_then(kind_of) {
        Some(("module", _)) => Some(Found::Module { name, id }),
        Some(_) => Some(Found::Item {
            definition: description.definition(&id)?,
            name: name?,
        }),
        None => Some(Found::Foreign {
            definition: description.definition(&id)?,
            name,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(items: &[(&str, &[&str])]) -> Surface {
        let items = items.iter().map(|(definition, paths)| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            ((*definition).to_owned(), paths)
        });
        Surface {
            items: items.collect(),
        }
    }

    #[test]
    fn two_paths_are_a_finding_unless_one_is_in_the_root() {
        let twice = surface(&[("a::B", &["windlass::x::B", "windlass::y::B"])]);
        assert_eq!(
            twice.findings(),
            ["windlass::x::B, windlass::y::B: the same item"]
        );
        let root = surface(&[("a::spawn", &["windlass::spawn", "windlass::task::spawn"])]);
        assert!(root.findings().is_empty());
        let channels = [
            "windlass::sync::mpmc::Sender",
            "windlass::sync::mpsc::Sender",
        ];
        assert!(surface(&[("a::Sender", &channels)]).findings().is_empty());
    }

    #[test]
    fn a_root_with_too_many_names_is_a_finding() {
        let paths: Vec<String> = (0..=ROOT_NAMES)
            .map(|i| format!("windlass::n{i}"))
            .collect();
        let items: Vec<(&str, [&str; 1])> = paths.iter().map(|p| (&**p, [&**p])).collect();
        let items: Vec<(&str, &[&str])> = items.iter().map(|(d, p)| (*d, &p[..])).collect();
        assert_eq!(surface(&items).findings().len(), 1);
        assert!(surface(&items[1..]).findings().is_empty());
    }

    #[test]
    fn entries_follow_re_exports_and_leave_out_private_ones() {
        let text = r#"{
            "root": 0,
            "index": {
                "0": {"name": "w", "inner": {"module": {"items": [1, 2, 3, 4]}}},
                "1": {"name": "Own", "inner": {"struct": {}}},
                "2": {"name": null, "visibility": "public", "inner":
                    {"use": {"id": 9, "name": "Theirs", "is_glob": false}}},
                "3": {"name": null, "visibility": "default", "inner":
                    {"use": {"id": 9, "name": "Hidden", "is_glob": false}}},
                "4": {"name": null, "visibility": "public", "inner":
                    {"use": {"id": 8, "name": "all", "is_glob": true}}}
            },
            "paths": {
                "1": {"crate_id": 0, "path": ["w", "Own"]},
                "8": {"crate_id": 5, "path": ["other", "all"]},
                "9": {"crate_id": 5, "path": ["other", "Theirs"]}
            }
        }"#;
        let description = Description::parse("w", text).expect("it is JSON");
        let found = entries(&description, &description.root());
        assert!(matches!(&found[0], Found::Item { name, .. } if name == "Own"));
        assert!(matches!(
            &found[1],
            Found::Foreign { name: Some(name), definition } if name == "Theirs" && definition == "other::Theirs"
        ));
        assert!(matches!(&found[2], Found::Foreign { name: None, .. }));
        assert_eq!(found.len(), 3);
    }
}

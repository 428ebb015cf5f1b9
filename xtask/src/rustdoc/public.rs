//! The public items of a crate, with all paths that lead to each.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Crates, Description, id_of, kind_of, list, sign_at_end};
use crate::error::Error;

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

/// Every public item by where it is defined, with all paths that lead to it.
///
/// Paths and definitions end in `()` for functions and in `!` for macros.
#[derive(Debug, Default)]
pub(crate) struct Public {
    pub(crate) items: BTreeMap<String, BTreeSet<String>>,
}

impl Public {
    /// Walks from the root of a crate.
    pub(crate) fn of(crates: &mut Crates, root: &str) -> Result<Public, Error> {
        let mut walk = Walk {
            crates,
            public: Public::default(),
            modules: Vec::new(),
        };
        let id = walk.crates.get(root)?.map(Description::root);
        if let Some(id) = id {
            walk.module(root, &id, root)?;
        }
        if walk.public.items.is_empty() {
            return Err(Error::Shape {
                what: format!("rustdoc's description of {root}"),
                lacks: "items",
            });
        }
        Ok(walk.public)
    }

    pub(crate) fn paths(&self) -> BTreeSet<&str> {
        self.items.values().flatten().map(String::as_str).collect()
    }
}

struct Walk<'a> {
    crates: &'a mut Crates,
    public: Public,
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
        let sign = sign_at_end(&definition);
        let paths = self.public.items.entry(definition).or_default();
        paths.insert(below(path, Some(name)) + sign);
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
    let ids = items.map_or(&[][..], list).iter();
    let found = ids.filter_map(|id| {
        let id = id_of(id);
        let item = description.item(&id)?;
        let (kind, inner) = kind_of(item)?;
        let name = item["name"].as_str().map(str::to_owned);
        if item["visibility"] != "public" {
            return None;
        }
        match kind {
            "use" => re_export(description, inner),
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

    #[test]
    fn entries_follow_re_exports_and_leave_out_private_ones() {
        let text = r#"{
            "root": 0,
            "index": {
                "0": {"name": "w", "inner": {"module": {"items": [1, 2, 3, 4, 5]}}},
                "1": {"name": "Own", "visibility": "public", "inner": {"struct": {}}},
                "2": {"name": null, "visibility": "public", "inner":
                    {"use": {"id": 9, "name": "Theirs", "is_glob": false}}},
                "3": {"name": null, "visibility": "default", "inner":
                    {"use": {"id": 9, "name": "Hidden", "is_glob": false}}},
                "4": {"name": null, "visibility": "public", "inner":
                    {"use": {"id": 8, "name": "all", "is_glob": true}}},
                "5": {"name": "Private", "visibility": "crate", "inner": {"struct": {}}}
            },
            "paths": {
                "1": {"crate_id": 0, "path": ["w", "Own"]},
                "5": {"crate_id": 0, "path": ["w", "Private"]},
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

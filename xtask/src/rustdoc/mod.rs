//! What rustdoc says about crates, as JSON, and what is public in them.
//!
//! [`Public`] walks from the root of one crate and follows re-exports into others, so that it sees
//! what a user can write.

mod public;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

pub(crate) use self::public::Public;

/// What makes rustdoc write JSON, with `RUSTC_BOOTSTRAP=1`: the JSON is an unstable output of the
/// stable tool. Private items are in it because public aliases and signatures lead to some.
pub(crate) const JSON: [&str; 6] = [
    "-Zunstable-options",
    "--output-format",
    "json",
    "--document-private-items",
    "--cap-lints",
    "allow",
];

/// Lets rustdoc describe every library of the workspace.
pub(crate) fn describe(workspace: &Workspace) -> Result<(), Error> {
    let mut cargo = workspace.cargo();
    cargo
        .args(["doc", "--quiet", "--workspace", "--no-deps"])
        .args(["--all-features", "--lib"])
        .args(["--exclude", "xtask", "--exclude", "windlass-cli"]);
    describe_with(&mut cargo)
}

/// Runs a `cargo doc` that writes JSON.
pub(crate) fn describe_with(cargo: &mut Command) -> Result<(), Error> {
    cargo
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTDOCFLAGS", JSON.join(" "));
    process::run(cargo)
}

/// The descriptions that were needed so far, by the names of their crates.
#[derive(Debug)]
pub(crate) struct Crates {
    /// Where the description of a crate is, if the crate is not one of the workspace.
    elsewhere: HashMap<String, PathBuf>,
    /// The folder of the descriptions of the workspace.
    doc: PathBuf,
    read: HashMap<String, Option<Description>>,
}

impl Crates {
    /// The crates of the workspace, as [`describe`] left them.
    pub(crate) fn new(workspace: &Workspace) -> Crates {
        Crates::in_folder(workspace.target.join("doc"))
    }

    /// The crates whose descriptions are in a folder.
    pub(crate) fn in_folder(doc: PathBuf) -> Crates {
        Crates {
            elsewhere: HashMap::new(),
            doc,
            read: HashMap::new(),
        }
    }

    /// Adds a crate whose description is in another file.
    pub(crate) fn with(mut self, name: &str, description: PathBuf) -> Crates {
        self.elsewhere.insert(name.to_owned(), description);
        self
    }

    /// Returns the description of a crate, or `None` for a crate of others.
    pub(crate) fn get(&mut self, name: &str) -> Result<Option<&Description>, Error> {
        if !self.read.contains_key(name) {
            let is_own = name == "windlass" || name.starts_with("windlass_");
            let path = match self.elsewhere.get(name) {
                Some(path) => Some(path.clone()),
                None => is_own.then(|| self.doc.join(format!("{name}.json"))),
            };
            let description = match path {
                Some(path) => {
                    let text = fs::read_to_string(&path).map_err(Error::reading(&path))?;
                    Some(Description::parse(name, &text)?)
                }
                None => None,
            };
            self.read.insert(name.to_owned(), description);
        }
        Ok(self.seen(name))
    }

    /// Returns a description that [`Crates::get`] has read before.
    pub(crate) fn seen(&self, name: &str) -> Option<&Description> {
        self.read.get(name).and_then(Option::as_ref)
    }
}

/// What rustdoc says about one crate.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) json: Value,
    /// The ids of the crate's own items by their definitions.
    pub(crate) ids: HashMap<String, String>,
}

impl Description {
    pub(crate) fn parse(name: &str, text: &str) -> Result<Description, Error> {
        let json: Value = serde_json::from_str(text).map_err(|source| Error::Json {
            what: format!("rustdoc's description of {name}"),
            source,
        })?;
        let paths = json["paths"].as_object().into_iter().flatten();
        let own = paths.filter(|(_, path)| path["crate_id"] == 0);
        let ids = own
            .map(|(id, path)| (definition_of(path), id.clone()))
            .collect();
        Ok(Description { json, ids })
    }

    pub(crate) fn root(&self) -> String {
        id_of(&self.json["root"])
    }

    pub(crate) fn item(&self, id: &str) -> Option<&Value> {
        self.json["index"].get(id)
    }

    /// Returns where an item is defined, also one of another crate.
    pub(crate) fn definition(&self, id: &str) -> Option<String> {
        self.json["paths"].get(id).map(definition_of)
    }
}

/// The full path of an item, with a sign for its namespace: `a::b`, `a::b()`, `a::b!`.
///
/// A module, a function and a macro may have the same path.
fn definition_of(path: &Value) -> String {
    let parts = path["path"].as_array().into_iter().flatten();
    let text = Vec::from_iter(parts.filter_map(Value::as_str)).join("::");
    text + path["kind"].as_str().map_or("", sign_of)
}

/// The sign for the namespace of a kind of item.
fn sign_of(kind: &str) -> &'static str {
    match kind {
        "function" => "()",
        "macro" | "proc_macro" | "proc_attribute" | "proc_derive" => "!",
        _ => "",
    }
}

/// The sign at the end of a definition.
fn sign_at_end(definition: &str) -> &'static str {
    match definition {
        text if text.ends_with("()") => "()",
        text if text.ends_with('!') => "!",
        _ => "",
    }
}

/// Ids are numbers in values and text in keys.
pub(crate) fn id_of(value: &Value) -> String {
    match value {
        Value::String(id) => id.clone(),
        other => other.to_string(),
    }
}

/// What an item is, in rustdoc's word, and its description.
pub(crate) fn kind_of(item: &Value) -> Option<(&str, &Value)> {
    let (kind, inner) = item["inner"].as_object()?.iter().next()?;
    Some((kind, inner))
}

/// The values of an array, none if it is something else.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

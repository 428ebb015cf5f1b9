//! The public items of one library, under the names that both sides of a comparison use.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::text::Writer;
use crate::error::Error;
use crate::rustdoc::{Crates, Description, Public, id_of};

/// A library as its users see it.
#[derive(Debug)]
pub(super) struct Library {
    crates: Crates,
    /// Definitions by paths without the name of the library.
    pub(super) paths: BTreeMap<String, String>,
    /// The path that stands for a definition in texts.
    names: HashMap<String, String>,
    /// Public aliases by the text of the type that each is for.
    aliases: HashMap<String, String>,
    names_of_other: BTreeSet<String>,
}

/// An item and the description that its ids belong to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) of: &'a Description,
    pub(super) json: &'a Value,
}

impl Library {
    /// Reads the library whose root is the crate `root`.
    ///
    /// With a `model`, an item takes the name of the model's item at the same path.
    pub(super) fn read(
        mut crates: Crates,
        root: &str,
        model: Option<&Library>,
    ) -> Result<Library, Error> {
        let public = Public::of(&mut crates, root)?;
        let prefix = format!("{root}::");
        let mut paths = BTreeMap::new();
        let mut names = HashMap::new();
        for (definition, all) in public.items {
            let short = |path: &String| path.trim_start_matches(&prefix).to_owned();
            let shared = all.iter().find_map(|path| {
                let theirs = model?.paths.get(&short(path))?;
                model?.names.get(theirs).cloned()
            });
            let shortest = all.iter().min_by_key(|path| (path.len(), path.as_str()));
            let krate = definition.split("::").next().unwrap_or_default();
            let is_own = crates.seen(krate).is_some();
            if let Some(name) = shared.or_else(|| shortest.map(short)).filter(|_| is_own) {
                names.insert(definition.clone(), name);
            }
            for path in &all {
                paths.insert(short(path), definition.clone());
            }
        }
        let mut library = Library {
            crates,
            paths,
            names,
            aliases: HashMap::new(),
            names_of_other: BTreeSet::new(),
        };
        library.aliases = library.find_aliases();
        Ok(library)
    }

    fn find_aliases(&self) -> HashMap<String, String> {
        let aliases = self.paths.values().filter_map(|definition| {
            let item = self.item(definition)?;
            let target = &item.json["inner"].get("type_alias")?["type"];
            target.get("resolved_path")?;
            Some((
                Writer::new(self, item.of).ty(target),
                self.name_of(definition),
            ))
        });
        aliases.collect()
    }

    /// Returns the public alias of a type with arguments.
    pub(super) fn alias_of(&self, text: &str) -> Option<String> {
        self.aliases.get(text).cloned()
    }

    /// Returns the item with a definition, or `None` for an item of others.
    pub(super) fn item(&self, definition: &str) -> Option<Item<'_>> {
        let krate = definition.split("::").next()?;
        let of = self.crates.seen(krate)?;
        let json = of.item(of.ids.get(definition)?)?;
        Some(Item { of, json })
    }

    /// Whether an item is defined in a crate of the library.
    pub(super) fn is_own(&self, definition: &str) -> bool {
        let krate = definition.split("::").next().unwrap_or_default();
        self.crates.seen(krate).is_some()
    }

    /// Gives one name to items for which another library has a single one.
    pub(super) fn merge(&mut self, other: &Library) {
        let mut first = HashMap::new();
        for (path, definition) in &self.paths {
            let Some(theirs) = other.paths.get(path).filter(|of| other.is_own(of)) else {
                continue;
            };
            if let Some(name) = other.names.get(theirs) {
                first.insert(definition.clone(), name.clone());
            }
        }
        self.names.extend(first);
        self.names_of_other = other.names.values().cloned().collect();
    }

    /// Returns the name of an item of which rustdoc says nothing but the last name: that of the
    /// other library, where only one item is called so.
    pub(super) fn name_by_last(&self, last: &str) -> String {
        let mut found = self.names_of_other.iter();
        let found = found
            .by_ref()
            .filter(|name| name.rsplit("::").next() == Some(last));
        match Vec::from_iter(found).as_slice() {
            [name] => (*name).clone(),
            _ => last.to_owned(),
        }
    }

    /// Whether users of the library can write the name of a definition.
    pub(super) fn can_name(&self, definition: &str) -> bool {
        self.names.contains_key(definition)
    }

    /// Returns how texts name a definition.
    pub(super) fn name_of(&self, definition: &str) -> String {
        if let Some(name) = self.names.get(definition) {
            return name.clone();
        }
        // Items of the standard library have the crate where they are defined in their paths.
        match definition.split_once("::") {
            Some(("core" | "alloc", rest)) => format!("std::{rest}"),
            _ => definition.to_owned(),
        }
    }
}

impl<'a> Item<'a> {
    /// Returns the item with an id of the same crate.
    pub(super) fn sibling(self, id: &Value) -> Option<Item<'a>> {
        let json = self.of.item(&id_of(id))?;
        Some(Item { of: self.of, json })
    }

    pub(super) fn name(self) -> &'a str {
        self.json["name"].as_str().unwrap_or_default()
    }

    pub(super) fn is_public(self) -> bool {
        self.json["visibility"] == "public"
    }
}

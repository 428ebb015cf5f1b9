//! What belongs to an item: methods, fields, variants and impls, as text.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::library::{Item, Library};
use super::signature::Signature;
use super::text::{Writer, assoc_type};
use crate::rustdoc::{kind_of, list};

/// Traits that the compiler implements by what a type is made of.
const AUTO_TRAITS: &[&str] = &["Send", "Sync", "Unpin", "UnwindSafe", "RefUnwindSafe"];
/// Traits that callers do not see: those of the compiler, and what runs at an end.
const INTERNAL_TRAITS: &[&str] = &["Freeze", "UnsafeUnpin", "StructuralPartialEq", "Drop"];

/// The members of a struct, an enum, a union or a trait.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Methods and functions; one name may be in several impls.
    pub(super) functions: BTreeMap<String, Vec<Signature>>,
    /// Fields, variants and constants, with their types.
    pub(super) values: BTreeMap<String, String>,
    /// Implemented traits, with the bounds of each impl.
    pub(super) impls: BTreeMap<String, Vec<BTreeSet<String>>>,
    /// Auto traits that hold, with the bounds of each.
    pub(super) auto: BTreeMap<String, Vec<BTreeSet<String>>>,
    /// Methods that an implementation of a trait must have.
    pub(super) required: BTreeSet<String>,
}

impl Members {
    pub(super) fn of(library: &Library, item: Item<'_>) -> Members {
        Members::of_type(library, item, &[])
    }

    /// The members of a type with some `arguments`, or in general if there are none.
    pub(super) fn of_type(library: &Library, item: Item<'_>, arguments: &[String]) -> Members {
        let mut members = Members::default();
        let Some((kind, inner)) = kind_of(item.json) else {
            return members;
        };
        if kind == "trait" {
            members.add_trait(library, item, inner);
            return members;
        }
        let fields = &inner["kind"]["plain"]["fields"];
        for field in list(fields).iter().filter_map(|id| item.sibling(id)) {
            if field.is_public() {
                let ty = &field.json["inner"]["struct_field"];
                let ty = Writer::new(library, field.of).ty(ty);
                members.values.insert(field.name().to_owned(), ty);
            }
        }
        for variant in list(&inner["variants"])
            .iter()
            .filter_map(|id| item.sibling(id))
        {
            let ty = variant_text(library, variant);
            members.values.insert(variant.name().to_owned(), ty);
        }
        for found in list(&inner["impls"])
            .iter()
            .filter_map(|id| item.sibling(id))
        {
            members.add_impl(library, found, &item.json["id"], arguments);
        }
        members
    }

    fn add_impl(&mut self, library: &Library, found: Item<'_>, id: &Value, arguments: &[String]) {
        let inner = &found.json["inner"]["impl"];
        let writer = || Writer::of_alias(library, found.of, &inner["for"], arguments);
        if !inner["blanket_impl"].is_null() || writer().is_none() {
            return;
        }
        if !inner["trait"].is_null() {
            let Some(writer) = writer() else { return };
            let definition = writer.definition(&inner["trait"]).unwrap_or_default();
            if library.is_own(&definition) && !library.can_name(&definition) {
                return;
            }
            let name = definition.rsplit("::").next().unwrap_or_default();
            if INTERNAL_TRAITS.contains(&name) || inner["is_negative"] == true {
                return;
            }
            let text = implementation(&writer, found, inner);
            // Impls for other types that name this one are listed with it, too.
            let is_for_itself = inner["for"]["resolved_path"]["id"] == *id;
            let other = match is_for_itself {
                true => String::new(),
                false => format!(" for {}", Writer::new(library, found.of).ty(&inner["for"])),
            };
            writer.add_generics(&inner["generics"]);
            let (to, text) = match AUTO_TRAITS.contains(&name) {
                true => (&mut self.auto, name.to_owned()),
                false => (&mut self.impls, format!("{text}{other}")),
            };
            to.entry(text).or_default().push(writer.bounds());
            return;
        }
        for item in list(&inner["items"])
            .iter()
            .filter_map(|id| found.sibling(id))
        {
            let Some((kind, function)) = kind_of(item.json).filter(|_| item.is_public()) else {
                continue;
            };
            let Some(writer) = writer() else { return };
            let name = item.name().to_owned();
            match kind {
                "function" => {
                    let signature = Signature::read(&writer, function, Some(&inner["generics"]));
                    self.functions.entry(name).or_default().push(signature);
                }
                "assoc_const" => {
                    self.values.insert(name, writer.ty(&function["type"]));
                }
                _ => {}
            }
        }
    }

    fn add_trait(&mut self, library: &Library, item: Item<'_>, inner: &Value) {
        for member in list(&inner["items"])
            .iter()
            .filter_map(|id| item.sibling(id))
        {
            let Some((kind, function)) = kind_of(member.json) else {
                continue;
            };
            let name = member.name().to_owned();
            match kind {
                "function" => {
                    if function["has_body"] != true {
                        self.required.insert(name.clone());
                    }
                    let writer = Writer::new(library, item.of);
                    let signature = Signature::read(&writer, function, None);
                    self.functions.entry(name).or_default().push(signature);
                }
                _ => {
                    self.values.insert(name, kind.to_owned());
                }
            }
        }
        // Types of the library name the traits they implement themselves.
        let all = list(&inner["implementations"]).iter();
        for found in all.filter_map(|id| item.sibling(id)) {
            let inner = &found.json["inner"]["impl"];
            let writer = Writer::new(library, found.of);
            let is_own = inner["for"].get("resolved_path").is_some_and(|path| {
                writer
                    .definition(path)
                    .is_some_and(|of| library.is_own(&of))
            });
            if !is_own && inner["is_negative"] != true {
                let of_type = writer.ty(&inner["for"]);
                writer.add_generics(&inner["generics"]);
                let bounds = self.impls.entry(format!("for {of_type}")).or_default();
                bounds.push(writer.bounds());
            }
        }
    }
}

/// A trait with its arguments and the associated types of one impl.
fn implementation(writer: &Writer<'_>, found: Item<'_>, inner: &Value) -> String {
    let mut text = writer.path(&inner["trait"]);
    let items = list(&inner["items"])
        .iter()
        .filter_map(|id| found.sibling(id));
    for item in items {
        if let Some(ty) = assoc_type(item) {
            text += &format!(" {} = {}", item.name(), writer.ty(ty));
        }
    }
    text
}

fn variant_text(library: &Library, variant: Item<'_>) -> String {
    let writer = Writer::new(library, variant.of);
    let kind = &variant.json["inner"]["variant"]["kind"];
    let tuple = list(&kind["tuple"]).iter();
    let named = list(&kind["struct"]["fields"]).iter();
    let fields = tuple.chain(named).filter_map(|id| variant.sibling(id));
    let fields: Vec<String> = fields
        .map(|field| writer.ty(&field.json["inner"]["struct_field"]))
        .collect();
    format!("({})", fields.join(", "))
}

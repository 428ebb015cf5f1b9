//! Types, bounds and generics as text that does not depend on how they were written.
//!
//! Parameters are numbered in the order of their use, paths are those of the definition, lifetimes
//! other than `'static` are left out, and an `impl Trait` argument is a parameter like any other.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::library::{Item, Library};
use crate::rustdoc::{Description, id_of, kind_of, list};

/// Turns the types of one item into text.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    library: &'a Library,
    of: &'a Description,
    /// What stands for a parameter; those of a function are numbered as they come.
    parameters: RefCell<HashMap<String, String>>,
    count: RefCell<usize>,
    bounds: RefCell<BTreeSet<String>>,
    /// Whether the type of an argument is written: an `impl Trait` in it is one more parameter.
    in_argument: Cell<bool>,
    /// The type whose impl this is: it is written as `Self`.
    self_type: Option<String>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(library: &'a Library, of: &'a Description) -> Writer<'a> {
        Writer {
            library,
            of,
            parameters: RefCell::default(),
            count: RefCell::default(),
            bounds: RefCell::default(),
            in_argument: Cell::default(),
            self_type: None,
        }
    }

    /// A writer for what is in an impl for a type with some arguments, as an alias gives them to
    /// it. `None` if the impl is for the type with others.
    pub(super) fn of_alias(
        library: &'a Library,
        of: &'a Description,
        of_type: &Value,
        arguments: &[String],
    ) -> Option<Self> {
        let mut writer = Writer::new(library, of);
        let formal = list(&of_type["resolved_path"]["args"]["angle_bracketed"]["args"]);
        let formal = formal.iter().map(|argument| &argument["type"]);
        for (formal, actual) in formal.filter(|ty| !ty.is_null()).zip(arguments) {
            match formal["generic"].as_str() {
                Some(name) => writer.bind(name, actual.clone()),
                None if writer.ty(formal) == *actual => {}
                None => return None,
            }
        }
        writer.self_type = Some(writer.ty(of_type));
        Some(writer)
    }

    /// Gives a parameter its text.
    fn bind(&self, parameter: &str, text: String) {
        self.parameters
            .borrow_mut()
            .insert(parameter.to_owned(), text);
    }

    fn next_parameter(&self) -> String {
        let mut count = self.count.borrow_mut();
        *count += 1;
        format!("T{count}")
    }

    pub(super) fn ty(&self, ty: &Value) -> String {
        let Some((kind, inner)) = ty.as_object().and_then(|ty| ty.iter().next()) else {
            return ty.as_str().unwrap_or("_").to_owned();
        };
        match kind.as_str() {
            "resolved_path" => self.itself(self.path(inner)),
            "generic" => self.parameter(inner.as_str().unwrap_or("_")),
            "primitive" => inner.as_str().unwrap_or("_").to_owned(),
            "tuple" => format!("({})", self.tys(inner)),
            "slice" => format!("[{}]", self.ty(inner)),
            "array" => {
                let length = inner["len"].as_str().unwrap_or("_");
                format!("[{}; {}]", self.ty(&inner["type"]), self.constant(length))
            }
            "borrowed_ref" => {
                let lifetime = match inner["lifetime"].as_str() {
                    Some("'static") => "'static ",
                    _ => "",
                };
                let mutable = if inner["is_mutable"] == true {
                    "mut "
                } else {
                    ""
                };
                format!("&{lifetime}{mutable}{}", self.ty(&inner["type"]))
            }
            "raw_pointer" => {
                let mutable = if inner["is_mutable"] == true {
                    "mut"
                } else {
                    "const"
                };
                format!("*{mutable} {}", self.ty(&inner["type"]))
            }
            "qualified_path" => {
                let name = inner["name"].as_str().unwrap_or("_");
                format!("{}::{name}", self.ty(&inner["self_type"]))
            }
            "impl_trait" if self.in_argument.get() => {
                let parameter = self.next_parameter();
                self.add_bounds(&parameter, inner);
                parameter
            }
            "impl_trait" => format!("impl {}", self.bounds_text(inner)),
            "dyn_trait" => {
                let traits = list(&inner["traits"]).iter();
                let traits: BTreeSet<String> = traits.map(|t| self.path(&t["trait"])).collect();
                format!("dyn {}", Vec::from_iter(traits).join(" + "))
            }
            "function_pointer" => {
                let inputs = list(&inner["sig"]["inputs"]).iter();
                let inputs: Vec<String> = inputs.map(|input| self.ty(&input[1])).collect();
                let output = self.output(&inner["sig"]["output"]);
                format!("fn({}) -> {output}", inputs.join(", "))
            }
            other => format!("<{other}>"),
        }
    }

    fn itself(&self, text: String) -> String {
        match &self.self_type {
            Some(own) if *own == text => "Self".to_owned(),
            _ => text,
        }
    }

    /// The type of an argument, in which an `impl Trait` is one more parameter.
    pub(super) fn input(&self, ty: &Value) -> String {
        self.in_argument.set(true);
        let text = self.ty(ty);
        self.in_argument.set(false);
        text
    }

    pub(super) fn output(&self, ty: &Value) -> String {
        if ty.is_null() {
            "()".to_owned()
        } else {
            self.ty(ty)
        }
    }

    fn tys(&self, tys: &Value) -> String {
        let tys: Vec<String> = list(tys).iter().map(|ty| self.ty(ty)).collect();
        tys.join(", ")
    }

    fn parameter(&self, name: &str) -> String {
        if name == "Self" {
            return "Self".to_owned();
        }
        if let Some(text) = self.parameters.borrow().get(name) {
            return text.clone();
        }
        let text = self.next_parameter();
        self.bind(name, text.clone());
        text
    }

    /// The value of a constant; a parameter if it has the name of one.
    fn constant(&self, text: &str) -> String {
        let known = self.parameters.borrow().get(text).cloned();
        known.unwrap_or_else(|| text.to_owned())
    }

    /// The definition of what a path names.
    pub(super) fn definition(&self, path: &Value) -> Option<String> {
        let known = self.of.definition(&id_of(&path["id"]));
        // rustdoc gives some without their modules.
        known.filter(|definition| definition.contains("::"))
    }

    /// A path with its arguments, after the aliases of std are resolved.
    pub(super) fn path(&self, path: &Value) -> String {
        let definition = self.definition(path);
        if let Some(target) = definition.as_deref().and_then(|of| self.hidden_alias(of)) {
            return target;
        }
        let name = match definition {
            Some(definition) => self.library.name_of(&definition),
            None => self
                .library
                .name_by_last(path["path"].as_str().unwrap_or("_")),
        };
        let arguments = self.arguments(&path["args"]);
        match name.as_str() {
            "std::io::error::Result" => {
                let value = arguments.join(", ");
                format!("std::result::Result<{value}, std::io::error::Error>")
            }
            "std::fmt::Result" => "std::result::Result<(), std::fmt::Error>".to_owned(),
            "std::os::raw::c_int" | "std::ffi::primitives::c_int" => "i32".to_owned(),
            _ if path["args"].get("parenthesized").is_some() => {
                let call = &path["args"]["parenthesized"];
                let output = self.output(&call["output"]);
                format!("{name}({}) -> {output}", self.tys(&call["inputs"]))
            }
            _ if arguments.is_empty() => name,
            _ => {
                let text = format!("{name}<{}>", arguments.join(", "));
                self.library.alias_of(&text).unwrap_or(text)
            }
        }
    }

    /// What stands behind an alias that users of the library cannot name.
    fn hidden_alias(&self, definition: &str) -> Option<String> {
        let item = self.library.item(definition)?;
        let target = &item.json["inner"].get("type_alias")?["type"];
        let is_hidden = !self.library.can_name(definition);
        is_hidden.then(|| Writer::new(self.library, item.of).ty(target))
    }

    /// The arguments of a path.
    pub(super) fn arguments(&self, arguments: &Value) -> Vec<String> {
        let inner = &arguments["angle_bracketed"];
        let types = list(&inner["args"]).iter().filter_map(|argument| {
            let (kind, value) = argument.as_object()?.iter().next()?;
            match kind.as_str() {
                "type" => Some(self.ty(value)),
                "const" => Some(self.constant(value["expr"].as_str().unwrap_or("_"))),
                _ => None,
            }
        });
        let equal = list(&inner["constraints"]).iter().filter_map(|constraint| {
            let name = constraint["name"].as_str()?;
            let ty = constraint["binding"]["equality"].get("type")?;
            Some(format!("{name} = {}", self.ty(ty)))
        });
        types.chain(equal).collect()
    }

    fn bounds_text(&self, bounds: &Value) -> String {
        let texts: BTreeSet<String> = list(bounds).iter().filter_map(|b| self.bound(b)).collect();
        Vec::from_iter(texts).join(" + ")
    }

    /// A bound; `None` for a lifetime other than `'static` and for a list of captures.
    fn bound(&self, bound: &Value) -> Option<String> {
        let (kind, inner) = bound.as_object()?.iter().next()?;
        match kind.as_str() {
            "trait_bound" => {
                let sign = if inner["modifier"] == "maybe" {
                    "?"
                } else {
                    ""
                };
                Some(format!("{sign}{}", self.path(&inner["trait"])))
            }
            "outlives" if inner == "'static" => Some("'static".to_owned()),
            _ => None,
        }
    }

    fn add_bounds(&self, subject: &str, bounds: &Value) {
        for bound in list(bounds) {
            if let Some(bound) = self.bound(bound) {
                self.bounds
                    .borrow_mut()
                    .insert(format!("{subject}: {bound}"));
            }
        }
    }

    /// Adds the bounds that generics state. All types must have been written before, so that the
    /// parameters have their numbers.
    pub(super) fn add_generics(&self, generics: &Value) {
        for parameter in list(&generics["params"]) {
            let ty = &parameter["kind"]["type"];
            if ty.is_object() && ty["is_synthetic"] != true {
                let subject = self.parameter(parameter["name"].as_str().unwrap_or("_"));
                self.add_bounds(&subject, &ty["bounds"]);
            }
        }
        for predicate in list(&generics["where_predicates"]) {
            let bound = &predicate["bound_predicate"];
            if bound.is_object() {
                let subject = self.ty(&bound["type"]);
                self.add_bounds(&subject, &bound["bounds"]);
            }
            let equal = &predicate["eq_predicate"];
            if equal.is_object() {
                let (left, right) = (self.ty(&equal["lhs"]), self.ty(&equal["rhs"]["type"]));
                self.bounds
                    .borrow_mut()
                    .insert(format!("{left} == {right}"));
            }
        }
    }

    /// The bounds so far, without those that cancel each other.
    pub(super) fn bounds(&self) -> BTreeSet<String> {
        let mut bounds = self.bounds.borrow().clone();
        // A bound on a type with no parameter in it holds, or the type itself lacks the trait.
        bounds.retain(|bound| is_general(bound.split(": ").next().unwrap_or_default()));
        for sized in bounds.clone() {
            let relaxed = sized.replace(": ", ": ?");
            if sized.ends_with(": std::marker::Sized") && bounds.remove(&relaxed) {
                bounds.remove(&sized);
            }
        }
        bounds
    }

    /// What a future of a type gives, if the type is a future of the library or any `impl Future`.
    pub(super) fn future_output(&self, ty: &Value) -> Option<String> {
        if let Some(bounds) = ty.get("impl_trait") {
            let traits = list(bounds)
                .iter()
                .map(|bound| &bound["trait_bound"]["trait"]);
            let future = traits
                .filter(|path| path.is_object())
                .find(|p| self.is_future(p))?;
            let constraints = &future["args"]["angle_bracketed"]["constraints"];
            return Some(self.ty(&constraints[0]["binding"]["equality"]["type"]));
        }
        let path = ty.get("resolved_path")?;
        let item = self.library.item(&self.definition(path)?)?;
        let (_, inner) = kind_of(item.json)?;
        let impls = list(&inner["impls"])
            .iter()
            .filter_map(|id| item.sibling(id));
        for found in impls {
            let implementation = &found.json["inner"]["impl"];
            let theirs = Writer::new(self.library, found.of);
            if !implementation["blanket_impl"].is_null()
                || !implementation["trait"].is_object()
                || !theirs.is_future(&implementation["trait"])
            {
                continue;
            }
            let formal = &implementation["for"]["resolved_path"]["args"]["angle_bracketed"]["args"];
            let actual = &path["args"]["angle_bracketed"]["args"];
            for (formal, actual) in list(formal).iter().zip(list(actual)) {
                if let Some(name) = formal["type"]["generic"].as_str() {
                    theirs.bind(name, self.ty(&actual["type"]));
                }
            }
            let output = list(&implementation["items"])
                .iter()
                .filter_map(|id| found.sibling(id))
                .find(|item| item.name() == "Output")?;
            return Some(theirs.ty(assoc_type(output)?));
        }
        None
    }

    fn is_future(&self, path: &Value) -> bool {
        let definition = self.definition(path);
        definition.is_some_and(|of| self.library.name_of(&of) == "std::future::future::Future")
    }

    /// Whether a type is one of the library that its users cannot name.
    pub(super) fn is_unnameable(&self, ty: &Value) -> bool {
        ty.get("resolved_path").is_some_and(|path| {
            let definition = self.definition(path);
            definition.is_none_or(|of| {
                let is_hidden = self.library.is_own(&of) && !self.library.can_name(&of);
                is_hidden && self.hidden_alias(&of).is_none()
            })
        })
    }
}

/// Whether there is a parameter in the text of a type.
fn is_general(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| {
        let number = word.strip_prefix('T').unwrap_or_default();
        word == "Self" || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// The type that an impl gives an associated type.
pub(super) fn assoc_type(item: Item<'_>) -> Option<&Value> {
    let inner = item.json["inner"].get("assoc_type")?;
    Some(&inner["type"]).filter(|ty| !ty.is_null())
}

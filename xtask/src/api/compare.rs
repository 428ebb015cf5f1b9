//! What a library lacks of its model, or has in another shape.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::library::{Item, Library};
use super::members::Members;
use super::signature::{Signature, bounds_allow};
use super::text::Writer;
use crate::rustdoc::kind_of;

/// In which way something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Missing,
    OtherSignature,
    MissingImpl,
    OtherAutoTrait,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Missing => "missing",
            Kind::OtherSignature => "other signature",
            Kind::MissingImpl => "missing impl",
            Kind::OtherAutoTrait => "other auto trait",
        })
    }
}

/// One difference between a library and its model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    pub(super) kind: Kind,
    /// The path of an item, `path::member`, or `path: Trait`.
    pub(super) subject: String,
    /// Both shapes, where there are two.
    pub(super) detail: String,
}

/// Returns all differences, in order.
pub(super) fn compare(model: &Library, own: &Library) -> Vec<Difference> {
    let mut comparison = Comparison {
        model,
        own,
        found: BTreeSet::new(),
    };
    let mut seen = BTreeSet::new();
    for (path, definition) in &model.paths {
        let Some(ours) = own.paths.get(path) else {
            comparison.add(Kind::Missing, path, String::new());
            continue;
        };
        if seen.insert((definition, ours)) {
            comparison.item(path, definition, ours);
        }
    }
    comparison.found.into_iter().collect()
}

struct Comparison<'a> {
    model: &'a Library,
    own: &'a Library,
    found: BTreeSet<Difference>,
}

impl Comparison<'_> {
    fn add(&mut self, kind: Kind, subject: &str, detail: String) {
        self.found.insert(Difference {
            kind,
            subject: subject.trim_end_matches("()").to_owned(),
            detail,
        });
    }

    fn differs(&mut self, subject: &str, model: &str, own: &str) {
        self.add(
            Kind::OtherSignature,
            subject,
            format!("{model}\n    ours: {own}"),
        );
    }

    fn item(&mut self, path: &str, theirs: &str, ours: &str) {
        let (model, own) = match (self.model.item(theirs), self.own.item(ours)) {
            (Some(model), Some(own)) => (model, own),
            // Items of others are the same if they are defined in the same place; a macro by
            // attribute has no shape to compare.
            (None, _) | (_, None) => {
                let (model, own) = (self.model.name_of(theirs), self.own.name_of(ours));
                if model != own && !path.ends_with('!') {
                    self.differs(path, &model, &own);
                }
                return;
            }
        };
        let (Some((model_kind, model_inner)), Some((own_kind, own_inner))) =
            (kind_of(model.json), kind_of(own.json))
        else {
            return;
        };
        match (model_kind, own_kind) {
            ("function", "function") => {
                let model = read(self.model, model, model_inner);
                self.function(path, &[model], &[read(self.own, own, own_inner)]);
            }
            ("struct" | "enum" | "union", "struct" | "enum" | "union") | ("trait", "trait") => {
                let own = Members::of(self.own, own);
                self.members(path, &Members::of(self.model, model), &own);
            }
            ("struct" | "enum" | "union", "type_alias") => {
                let writer = Writer::new(self.own, own.of);
                let target = &own_inner["type"]["resolved_path"];
                let item = writer.definition(target).and_then(|of| self.own.item(&of));
                if let Some(item) = item {
                    let arguments = writer.arguments(&target["args"]);
                    let own = Members::of_type(self.own, item, &arguments);
                    self.members(path, &Members::of(self.model, model), &own);
                }
            }
            ("macro" | "proc_macro", _) => {}
            ("type_alias" | "constant", _) if model_kind == own_kind => {
                let model = Writer::new(self.model, model.of).ty(&model_inner["type"]);
                let own = Writer::new(self.own, own.of).ty(&own_inner["type"]);
                if model != own {
                    self.differs(path, &model, &own);
                }
            }
            _ => self.differs(path, model_kind, own_kind),
        }
    }

    fn members(&mut self, path: &str, model: &Members, own: &Members) {
        for (name, signatures) in &model.functions {
            let subject = format!("{path}::{name}");
            match own.functions.get(name) {
                Some(ours) => self.function(&subject, signatures, ours),
                None => self.add(Kind::Missing, &subject, String::new()),
            }
        }
        for (name, ty) in &model.values {
            let subject = format!("{path}::{name}");
            match own.values.get(name) {
                Some(ours) if ours == ty => {}
                Some(ours) => self.differs(&subject, ty, ours),
                None => self.add(Kind::Missing, &subject, String::new()),
            }
        }
        for name in own.required.difference(&model.required) {
            let subject = format!("{path}::{name}");
            self.differs(&subject, "not required", "required");
        }
        self.traits(path, Kind::MissingImpl, &model.impls, &own.impls);
        self.traits(path, Kind::OtherAutoTrait, &model.auto, &own.auto);
    }

    fn traits(
        &mut self,
        path: &str,
        kind: Kind,
        model: &BTreeMap<String, Vec<BTreeSet<String>>>,
        own: &BTreeMap<String, Vec<BTreeSet<String>>>,
    ) {
        for (name, bounds) in model {
            let ours = own.get(name).map_or(&[][..], Vec::as_slice);
            let lacks = bounds
                .iter()
                .find(|model| !ours.iter().any(|own| bounds_allow(own, model)));
            if let Some(model) = lacks {
                let detail = match ours.first() {
                    None => String::new(),
                    Some(own) => format!("where {model:?}\n    ours: where {own:?}"),
                };
                self.add(kind, &format!("{path}: {name}"), detail);
            }
        }
    }

    /// Compares the functions of one name: each of the model's needs one of ours.
    fn function(&mut self, path: &str, model: &[Signature], own: &[Signature]) {
        let lacks = model
            .iter()
            .find(|model| !own.iter().any(|own| own.serves_as(model)));
        if let (Some(model), Some(own)) = (lacks, own.first()) {
            self.differs(path, &model.to_string(), &own.to_string());
        }
    }
}

fn read(library: &Library, item: Item<'_>, function: &Value) -> Signature {
    Signature::read(&Writer::new(library, item.of), function, None)
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::path::Path;
    use std::process::{self, Command};

    use super::*;
    use crate::rustdoc::{self, Crates};

    /// Lets rustdoc describe a small crate and returns it as a library.
    fn library(folder: &Path, name: &str, source: &str, model: Option<&Library>) -> Library {
        let file = folder.join(format!("{name}.rs"));
        fs::write(&file, source).unwrap();
        let program = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
        let mut command = Command::new(program);
        command
            .args(["--edition", "2024", "--crate-name", name])
            .arg(&file);
        command.arg("--out-dir").arg(folder).args(rustdoc::JSON);
        command.env("RUSTC_BOOTSTRAP", "1").current_dir(folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let description = folder.join(format!("{name}.json"));
        let crates = Crates::in_folder(folder.to_owned()).with(name, description);
        Library::read(crates, name, model).unwrap()
    }

    /// The differences of two small crates: kinds and subjects.
    fn differences(model: &str, own: &str) -> Vec<String> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("windlass-api-{}-{number}", process::id());
        let folder = env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let mut model = library(&folder, "model", model, None);
        let own = library(&folder, "own", own, Some(&model));
        model.merge(&own);
        let found = compare(&model, &own);
        fs::remove_dir_all(&folder).unwrap();
        let texts = found
            .iter()
            .map(|one| format!("{}: {}", one.kind, one.subject));
        texts.collect()
    }

    #[test]
    fn items_and_methods_that_are_missing_are_found() {
        let model = "pub mod m { pub struct A; impl A { pub fn f(&self) {} pub fn g() {} } }
            pub fn free() {} #[macro_export] macro_rules! pin { () => {} }";
        let own = "pub mod m { pub struct A; impl A { pub fn f(&self) {} fn g() {} } }";
        let expected = ["missing: free", "missing: m::A::g", "missing: pin!"];
        assert_eq!(differences(model, own), expected);
        assert!(differences(model, model).is_empty());
    }

    #[test]
    fn signatures_are_compared_and_may_ask_for_less() {
        let model = "pub struct A; impl A { pub fn f(&self, n: u32) -> u32 { n } }
            pub const fn c() {} pub fn bound<T: Send>(_: T) {}";
        let own = "pub struct A; impl A { pub fn f(&mut self, n: u32) -> u32 { n } }
            pub fn c() {} pub fn bound<T: Send + Clone>(_: T) {}";
        let expected = [
            "other signature: A::f",
            "other signature: bound",
            "other signature: c",
        ];
        assert_eq!(differences(model, own), expected);
        let less = "pub struct A; impl A { pub const fn f(&self, n: u32) -> u32 { n } }
            pub const fn c() {} pub fn bound<T>(_: T) {}";
        assert!(differences(model, less).is_empty());
    }

    #[test]
    fn how_a_signature_is_written_does_not_matter() {
        let model = "use std::path::Path; use std::io;
            pub async fn open(path: impl AsRef<Path>) -> io::Result<u8> { Err(io::Error::other(path.as_ref().display().to_string())) }
            pub fn each<'a, A, B: Clone>(a: &'a A, b: B) -> (B, &'a A) { (b, a) }";
        let own = "use std::path::Path; use std::future::{Future, Ready, ready};
            pub fn open<P>(_: P) -> Open where P: AsRef<Path> { Open(ready(Ok(1))) }
            pub struct Open(Ready<Result<u8, std::io::Error>>);
            impl Future for Open { type Output = Result<u8, std::io::Error>;
                fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> { std::task::Poll::Pending } }
            pub fn each<X, Y>(a: &X, b: Y) -> (Y, &X) where Y: Clone { (b, a) }";
        assert!(differences(model, own).is_empty());
        let other = own
            .replace("Result<u8,", "Result<u16,")
            .replace("Ok(1)", "Ok(2)");
        assert_eq!(differences(model, &other), ["other signature: open"]);
    }

    #[test]
    fn traits_that_are_missing_are_found() {
        let model = "#[derive(Debug, Clone)] pub struct A; pub struct B(pub Box<u8>);
            impl From<u8> for A { fn from(_: u8) -> A { A } }";
        let own = "#[derive(Debug)] pub struct A; pub struct B(pub Box<u8>, std::rc::Rc<u8>);
            impl From<u16> for A { fn from(_: u16) -> A { A } }";
        let expected = [
            "missing impl: A: std::clone::Clone",
            "missing impl: A: std::convert::From<u8>",
            "other auto trait: B: Send",
            "other auto trait: B: Sync",
        ];
        assert_eq!(differences(model, own), expected);
    }

    #[test]
    fn bounds_of_auto_traits_are_compared() {
        let model = "pub struct Guard<T>(std::sync::Arc<std::sync::Mutex<T>>);";
        let own = "pub struct Guard<T>(std::sync::Arc<T>);";
        let expected = [
            "other auto trait: Guard: RefUnwindSafe",
            "other auto trait: Guard: Send",
            "other auto trait: Guard: Sync",
            "other auto trait: Guard: UnwindSafe",
        ];
        assert_eq!(differences(model, own), expected);
    }

    #[test]
    fn an_alias_stands_for_the_type_with_its_arguments() {
        let model = "pub struct S; pub mod tcp { pub struct Half(crate::S); impl Half { pub fn peek(&self) -> &crate::S { &self.0 } pub fn ready(&self) {} } }";
        let own = "pub struct S; pub struct Any<T>(T); impl<T> Any<T> { pub fn peek(&self) -> &T { &self.0 } }
            pub mod tcp { pub type Half = crate::Any<crate::S>; }";
        assert_eq!(differences(model, own), ["missing: tcp::Half::ready"]);
    }

    #[test]
    fn one_type_may_stand_in_several_modules() {
        let model = "pub mod a { pub struct E; pub fn f() -> E { E } } pub mod b { pub struct E; pub fn f() -> E { E } }";
        let own = "mod e { pub struct E; } pub mod a { pub use crate::e::E; pub fn f() -> E { E } } pub mod b { pub use crate::e::E; pub fn f() -> E { E } }";
        assert!(differences(model, own).is_empty());
    }
}

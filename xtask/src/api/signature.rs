//! The signature of a function, and whether one can stand in the place of another.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::text::Writer;
use crate::rustdoc::list;

/// A function as its callers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) inputs: Vec<String>,
    pub(super) output: String,
    /// What the future gives that the function returns; an `async fn` always has one.
    pub(super) future: Option<String>,
    pub(super) is_async: bool,
    pub(super) is_unsafe: bool,
    pub(super) is_const: bool,
    pub(super) bounds: BTreeSet<String>,
}

impl Signature {
    /// Reads a function; `generics` are those of the impl around it.
    pub(super) fn read(writer: &Writer<'_>, function: &Value, generics: Option<&Value>) -> Self {
        let (signature, header) = (&function["sig"], &function["header"]);
        let inputs = list(&signature["inputs"]).iter();
        let inputs = inputs.map(|input| writer.input(&input[1])).collect();
        let ty = &signature["output"];
        let output = writer.output(ty);
        let declared = header["is_async"] == true;
        let future = match declared {
            true => Some(output.clone()),
            false => writer.future_output(ty),
        };
        // A future without a name is used as that of an `async fn` is.
        let is_unnameable = writer.is_unnameable(ty);
        let is_future = future.is_some() && ty.get("impl_trait").is_some();
        let is_async = declared || is_future || is_unnameable;
        for generics in generics.into_iter().chain([&function["generics"]]) {
            writer.add_generics(generics);
        }
        Signature {
            inputs,
            output,
            future,
            is_async,
            is_unsafe: header["is_unsafe"] == true,
            is_const: header["is_const"] == true,
            bounds: writer.bounds(),
        }
    }

    /// Whether calls that compile with `model` compile with this signature, too.
    pub(super) fn serves_as(&self, model: &Signature) -> bool {
        let output = match model.is_async {
            // Nothing is said about futures in private modules.
            true if model.future.is_none() => self.is_async || self.future.is_some(),
            true => self.future == model.future,
            false => !self.is_async && self.output == model.output,
        };
        output
            && self.inputs == model.inputs
            && self.is_unsafe == model.is_unsafe
            && (self.is_const || !model.is_const)
            && bounds_allow(&self.bounds, &model.bounds)
    }
}

/// Whether whatever satisfies the bounds of `model` satisfies `own`.
pub(super) fn bounds_allow(own: &BTreeSet<String>, model: &BTreeSet<String>) -> bool {
    let relaxes = |bound: &&String| bound.contains(": ?");
    own.iter()
        .filter(|bound| !relaxes(bound))
        .all(|bound| model.contains(bound))
        && model
            .iter()
            .filter(relaxes)
            .all(|bound| own.contains(bound))
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (self.is_const, "const "),
            (self.is_async, "async "),
            (self.is_unsafe, "unsafe "),
        ];
        for (_, word) in words.iter().filter(|(is, _)| *is) {
            f.write_str(word)?;
        }
        let output = match (&self.future, self.is_async) {
            (Some(future), true) => future,
            _ => &self.output,
        };
        write!(f, "fn({}) -> {output}", self.inputs.join(", "))?;
        if !self.bounds.is_empty() {
            let bounds: Vec<&str> = self.bounds.iter().map(String::as_str).collect();
            write!(f, " where {}", bounds.join(", "))?;
        }
        Ok(())
    }
}

//! What a recording says.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a kind of recording says in its header, its lines and its end.
///
/// A line is written as a JSON object with one key that is not `end`: an enum with struct variants
/// and serde's usual form is one.
pub trait Format {
    /// The name of the kind, for example `graph`.
    const NAME: &'static str;
    /// The version of the header, lines and end. A reader refuses other versions.
    const VERSION: u32;
    /// The type of what the first line says.
    type Header: Serialize + DeserializeOwned + Debug + Clone;
    /// The type of the lines.
    type Line: Serialize + DeserializeOwned + PartialEq + Debug + Clone;
    /// The type of what the last line says.
    type End: Serialize + DeserializeOwned + Debug + Clone;

    /// Names what a line came from, for the error that says that the line cannot be written.
    fn origin(_line: &Self::Line) -> &'static str {
        "a value"
    }
}

/// What stands before the checksum of a line. The checksum is the last field, so that the text
/// before it is the text that was summed up.
pub(crate) const SUM_FIELD: &str = ",\"sum\":\"";
/// What the last line begins with.
pub(crate) const END_FIELD: &str = "{\"end\":";

/// The first line.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct First<H> {
    pub(crate) windlass_recording: String,
    pub(crate) version: u32,
    pub(crate) build: String,
    pub(crate) header: H,
}

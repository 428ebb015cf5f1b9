//! Payloads as JSON.
//!
//! There are two forms, which differ in what JSON has no word for:
//!
//! | payload | plain form | recorded form |
//! |---|---|---|
//! | bytes | `{"$bytes": "aGk="}` | the same |
//! | a number that is not finite | `null` | `{"$float": "NaN"}` |
//! | a PID | its text | `{"$pid": "{host\|1.2}"}` |
//! | a map with a key that begins with `$` | as other maps | `{"$map": {..}}` |
//! | a Rust value | an error | an error, or `{"$opaque": "its type"}` |
//!
//! The plain form is for files, sockets and other programs. The recorded form is for recordings:
//! what is read is what was written. A recording that may lack Rust values uses
//! [`recorded::or_type_name`]; they come back as [`Unrecorded`].
//!
//! JSON shares nothing, so a part that is in several places is written in each of them. Both forms
//! are therefore bounded ([`Unwritable`]).

mod reader;
pub mod recorded;
#[cfg(test)]
mod tests;
mod writer;

use serde::de::DeserializeSeed as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use self::reader::PayloadReader;
use self::writer::PayloadWriter;
use crate::payload::Payload;
use crate::unwritable::Unwritable;

const BYTES: &str = "$bytes";
const FLOAT: &str = "$float";
const PID: &str = "$pid";
const MAP: &str = "$map";
const OPAQUE: &str = "$opaque";

/// A Rust value that was not recorded: the name of its type stands for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrecorded(pub String);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Recorded,
    /// As `Recorded`, with the names of types in place of Rust values.
    RecordedOrTypeName,
}

impl Payload {
    /// Returns the payload as JSON, in the plain form.
    ///
    /// # Errors
    /// If a Rust value is in it, or too many values or levels.
    pub fn to_json(&self) -> Result<Value, Unwritable> {
        PayloadWriter::new(Form::Plain).value(self)
    }

    /// Returns the payload that this JSON says, in the plain form.
    pub fn from_json(value: Value) -> Payload {
        // Only texts that are not JSON, and wrong recorded forms, are refused.
        PayloadReader(Form::Plain)
            .deserialize(value)
            .unwrap_or_default()
    }

    /// Returns the payload as JSON in the recorded form, which [`from_recorded`] reads.
    ///
    /// [`from_recorded`]: Payload::from_recorded
    ///
    /// # Errors
    /// If a Rust value is in it, or too many values or levels.
    pub fn to_recorded(&self) -> Result<Value, Unwritable> {
        PayloadWriter::new(Form::Recorded).value(self)
    }

    /// Returns the payload that was recorded.
    ///
    /// # Errors
    /// If this is not the recorded form of a payload.
    pub fn from_recorded(value: Value) -> Result<Payload, serde_json::Error> {
        PayloadReader(Form::Recorded).deserialize(value)
    }
}

impl Payload {
    /// Returns the type of the first Rust value in this payload that was not recorded, if there is
    /// one. For payloads that were read from a recording.
    pub fn unrecorded(&self) -> Option<&str> {
        let mut waiting = vec![self];
        while let Some(payload) = waiting.pop() {
            match payload {
                Payload::List(values) => waiting.extend(values.iter().rev()),
                Payload::Map(entries) => waiting.extend(entries.values().rev()),
                other => {
                    if let Some(Unrecorded(name)) = other.downcast_ref() {
                        return Some(name);
                    }
                }
            }
        }
        None
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Payload {
        Payload::from_json(value)
    }
}

/// The plain form.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        PayloadWriter::new(Form::Plain).write(self, to)
    }
}

/// The plain form.
impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Payload, D::Error> {
        PayloadReader(Form::Plain).deserialize(from)
    }
}

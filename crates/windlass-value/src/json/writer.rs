//! Payloads to JSON.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{BYTES, FLOAT, Form, MAP, OPAQUE, PID, Unrecorded, Unwritable};
use crate::base64;
use crate::payload::Payload;

/// How many values are written for one payload.
pub(super) const MOST_VALUES: usize = 1_000_000;

/// How many lists and maps may be inside of each other: readers of JSON take 127 levels, and a line
/// of a recording needs some around the payload.
pub(super) const MOST_LEVELS: usize = 100;

/// One payload that is being written.
pub(super) struct PayloadWriter {
    form: Form,
    /// How many more values may be written.
    values: Cell<usize>,
    refused: Cell<Option<Unwritable>>,
}

impl PayloadWriter {
    pub(super) fn new(form: Form) -> PayloadWriter {
        PayloadWriter {
            form,
            values: Cell::new(MOST_VALUES),
            refused: Cell::new(None),
        }
    }

    pub(super) fn write<S: Serializer>(&self, payload: &Payload, to: S) -> Result<S::Ok, S::Error> {
        let part = Part {
            payload,
            levels: MOST_LEVELS,
            writer: self,
        };
        part.serialize(to)
    }

    pub(super) fn value(&self, payload: &Payload) -> Result<Value, Unwritable> {
        let written = self.write(payload, serde_json::value::Serializer);
        // Making a `Value` fails for our reasons only.
        written.map_err(|_| {
            self.refused
                .get()
                .unwrap_or(Unwritable::TooLarge(MOST_VALUES))
        })
    }

    fn refuse<E: serde::ser::Error>(&self, reason: Unwritable) -> E {
        self.refused.set(Some(reason));
        E::custom(reason)
    }
}

/// A part of a payload that is being written.
#[derive(Clone, Copy)]
struct Part<'a> {
    payload: &'a Payload,
    /// How many levels may be inside of it.
    levels: usize,
    writer: &'a PayloadWriter,
}

impl<'a> Part<'a> {
    fn inside(self, payload: &'a Payload) -> Part<'a> {
        let levels = self.levels - 1;
        Part {
            payload,
            levels,
            ..self
        }
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let writer = self.writer;
        let Some(left) = writer.values.get().checked_sub(1) else {
            return Err(writer.refuse(Unwritable::TooLarge(MOST_VALUES)));
        };
        writer.values.set(left);
        let is_recorded = writer.form != Form::Plain;
        match self.payload {
            Payload::Nil => to.serialize_unit(),
            Payload::Bool(value) => to.serialize_bool(*value),
            Payload::Int(value) => to.serialize_i64(*value),
            Payload::Float(value) if value.is_finite() => to.serialize_f64(*value),
            Payload::Float(value) if is_recorded => tagged(to, FLOAT, &value.to_string()),
            Payload::Float(_) => to.serialize_unit(),
            Payload::Text(text) => to.serialize_str(text),
            Payload::Bytes(bytes) => tagged(to, BYTES, &base64::encode(bytes)),
            Payload::Pid(pid) if is_recorded => tagged(to, PID, &pid.to_string()),
            Payload::Pid(pid) => to.collect_str(pid),
            Payload::Opaque(value) => match (value.downcast_ref::<Unrecorded>(), writer.form) {
                (Some(Unrecorded(name)), form) if form != Form::Plain => tagged(to, OPAQUE, name),
                (_, Form::RecordedOrTypeName) => tagged(to, OPAQUE, value.type_name()),
                _ => Err(writer.refuse(Unwritable::Opaque(value.type_name()))),
            },
            // One for this level, and one for a `$map`.
            Payload::List(_) | Payload::Map(_) if self.levels < 2 => {
                Err(writer.refuse(Unwritable::TooDeep(MOST_LEVELS)))
            }
            Payload::List(values) => {
                let mut list = to.serialize_seq(Some(values.len()))?;
                for value in values.iter() {
                    list.serialize_element(&self.inside(value))?;
                }
                list.end()
            }
            Payload::Map(entries) if is_recorded && has_reserved_key(entries) => {
                tagged(to, MAP, &Entries(self.inside(self.payload), entries))
            }
            Payload::Map(entries) => Entries(*self, entries).serialize(to),
        }
    }
}

/// The entries of a map, without a look at its keys.
struct Entries<'a>(Part<'a>, &'a BTreeMap<Arc<str>, Payload>);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Entries(part, entries) = self;
        let mut map = to.serialize_map(Some(entries.len()))?;
        for (key, value) in *entries {
            map.serialize_entry(&**key, &part.inside(value))?;
        }
        map.end()
    }
}

fn tagged<S: Serializer, T: Serialize + ?Sized>(
    to: S,
    tag: &str,
    value: &T,
) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(1))?;
    map.serialize_entry(tag, value)?;
    map.end()
}

fn has_reserved_key(entries: &BTreeMap<Arc<str>, Payload>) -> bool {
    let bounds = (Bound::Included("$"), Bound::Unbounded);
    let first = entries.range::<str, _>(bounds).next();
    first.is_some_and(|(key, _)| key.starts_with('$'))
}

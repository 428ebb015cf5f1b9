//! JSON to payloads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use super::{BYTES, FLOAT, Form, MAP, OPAQUE, PID, Unrecorded};
use crate::base64;
use crate::payload::Payload;

/// What is read: a value in one of the two forms.
#[derive(Clone, Copy)]
pub(super) struct PayloadReader(pub(super) Form);

impl<'de> DeserializeSeed<'de> for PayloadReader {
    type Value = Payload;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Payload, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for PayloadReader {
    type Value = Payload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Payload, E> {
        Ok(Payload::Nil)
    }

    fn visit_none<E>(self) -> Result<Payload, E> {
        Ok(Payload::Nil)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Payload, D::Error> {
        self.deserialize(from)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Payload, E> {
        Ok(Payload::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Payload, E> {
        Ok(Payload::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Payload, E> {
        // Whole numbers have 64 bits with a sign; what is beyond becomes a float, as in JavaScript.
        let whole = i64::try_from(value).map(Payload::Int);
        Ok(whole.unwrap_or(Payload::Float(value as f64)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Payload, E> {
        Ok(Payload::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Payload, E> {
        Ok(Payload::from(text))
    }

    fn visit_string<E>(self, text: String) -> Result<Payload, E> {
        Ok(Payload::from(text))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Payload, E> {
        Ok(Payload::from(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Payload, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Payload::from(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Payload, A::Error> {
        let Some(first) = entries.next_key::<Arc<str>>()? else {
            return Ok(Payload::Map(BTreeMap::new().into()));
        };
        if self.0 == Form::Recorded && first.starts_with('$') {
            let read = self.read_tagged(&first, &mut entries)?;
            return match entries.next_key::<Arc<str>>()? {
                None => Ok(read),
                Some(key) => Err(A::Error::custom(format!("{key:?} stands beside {first:?}"))),
            };
        }
        let value = entries.next_value_seed(self)?;
        let entries = read_entries(self, (first, value), entries)?;
        Ok(match bytes_of(&entries) {
            Some(bytes) => Payload::from(bytes),
            None => Payload::Map(entries.into()),
        })
    }
}

impl PayloadReader {
    /// Reads the value of a key that begins with `$` in the recorded form.
    fn read_tagged<'de, A: MapAccess<'de>>(
        self,
        tag: &str,
        entries: &mut A,
    ) -> Result<Payload, A::Error> {
        if tag == MAP {
            return entries.next_value_seed(ReadMap);
        }
        let text = entries.next_value::<String>()?;
        let wrong = || A::Error::custom(format!("{text:?} is no {tag}"));
        match tag {
            BYTES => base64::decode(&text).map(Payload::from).ok_or_else(wrong),
            FLOAT => text.parse().map(Payload::Float).map_err(|_| wrong()),
            PID => text.parse().map(Payload::Pid).map_err(A::Error::custom),
            OPAQUE => Ok(Payload::object(Unrecorded(text))),
            _ => Err(A::Error::custom(format!("{tag:?} is no kind of value"))),
        }
    }
}

/// Reads the entries of a `$map`: its keys mean nothing else.
struct ReadMap;

impl<'de> DeserializeSeed<'de> for ReadMap {
    type Value = Payload;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Payload, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ReadMap {
    type Value = Payload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Payload, A::Error> {
        let reader = PayloadReader(Form::Recorded);
        let Some(first) = entries.next_key()? else {
            return Ok(Payload::Map(BTreeMap::new().into()));
        };
        let value = entries.next_value_seed(reader)?;
        let entries = read_entries(reader, (first, value), entries)?;
        Ok(Payload::Map(entries.into()))
    }
}

fn read_entries<'de, A: MapAccess<'de>>(
    reader: PayloadReader,
    first: (Arc<str>, Payload),
    mut entries: A,
) -> Result<BTreeMap<Arc<str>, Payload>, A::Error> {
    let mut map = BTreeMap::from([first]);
    while let Some(key) = entries.next_key()? {
        map.insert(key, entries.next_value_seed(reader)?);
    }
    Ok(map)
}

/// Returns the bytes that a map stands for, if it does.
fn bytes_of(entries: &BTreeMap<Arc<str>, Payload>) -> Option<Vec<u8>> {
    if entries.len() != 1 {
        return None;
    }
    base64::decode(entries.get(BYTES)?.as_str()?)
}

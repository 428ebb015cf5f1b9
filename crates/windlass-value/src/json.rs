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

use std::cell::Cell;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::base64;
use crate::payload::Payload;

/// How many values are written for one payload.
const MOST_VALUES: usize = 1_000_000;
/// How many lists and maps may be inside of each other: readers of JSON take 127 levels, and a line
/// of a recording needs some around the payload.
const MOST_LEVELS: usize = 100;

const BYTES: &str = "$bytes";
const FLOAT: &str = "$float";
const PID: &str = "$pid";
const MAP: &str = "$map";
const OPAQUE: &str = "$opaque";

/// The reason why a payload has no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unwritable {
    /// A Rust value of this type is in it.
    Opaque(&'static str),
    /// More lists and maps are inside of each other than this.
    TooDeep(usize),
    /// More values are in it than this.
    TooLarge(usize),
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwritable::Opaque(name) => write!(
                f,
                "a {name} cannot be written as JSON: turn it into plain values first"
            ),
            Unwritable::TooDeep(most) => write!(
                f,
                "the value has more than {most} levels of lists and maps: send a flatter one"
            ),
            Unwritable::TooLarge(most) => write!(
                f,
                "the value has more than {most} values (what is in several places counts in each): \
                 send it in parts"
            ),
        }
    }
}

impl Error for Unwritable {}

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
        Writing::new(Form::Plain).value(self)
    }

    /// Returns the payload that this JSON says, in the plain form.
    pub fn from_json(value: Value) -> Payload {
        // Only texts that are not JSON, and wrong recorded forms, are refused.
        Reading(Form::Plain).deserialize(value).unwrap_or_default()
    }

    /// Returns the payload as JSON in the recorded form, which [`from_recorded`] reads.
    ///
    /// [`from_recorded`]: Payload::from_recorded
    ///
    /// # Errors
    /// If a Rust value is in it, or too many values or levels.
    pub fn to_recorded(&self) -> Result<Value, Unwritable> {
        Writing::new(Form::Recorded).value(self)
    }

    /// Returns the payload that was recorded.
    ///
    /// # Errors
    /// If this is not the recorded form of a payload.
    pub fn from_recorded(value: Value) -> Result<Payload, serde_json::Error> {
        Reading(Form::Recorded).deserialize(value)
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

/// The recorded form, for fields of serde-derived types: `#[serde(with = "windlass_value::recorded")]`.
pub mod recorded {
    use super::{DeserializeSeed, Deserializer, Form, Payload, Reading, Serializer, Writing};

    /// Writes a payload in the recorded form.
    ///
    /// # Errors
    /// If a Rust value is in it, or too many values or levels, or as the serializer says.
    pub fn serialize<S: Serializer>(payload: &Payload, to: S) -> Result<S::Ok, S::Error> {
        Writing::new(Form::Recorded).write(payload, to)
    }

    /// Reads a payload in the recorded form.
    ///
    /// # Errors
    /// If it is not the recorded form of a payload, or as the deserializer says.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Payload, D::Error> {
        Reading(Form::Recorded).deserialize(from)
    }

    /// The recorded form with the names of types in place of Rust values, for fields of
    /// serde-derived types.
    pub mod or_type_name {
        pub use super::deserialize;
        use super::{Form, Payload, Serializer, Writing};

        /// Writes a payload in the recorded form, and for Rust values the names of their types.
        ///
        /// # Errors
        /// If there are too many values or levels in it, or as the serializer says.
        pub fn serialize<S: Serializer>(payload: &Payload, to: S) -> Result<S::Ok, S::Error> {
            Writing::new(Form::RecordedOrTypeName).write(payload, to)
        }

        /// The same form for a map of payloads.
        pub mod values {
            use std::collections::BTreeMap;

            use serde::{Deserialize, Serialize};

            use super::super::{Deserializer, Payload, Serializer};

            #[derive(Serialize)]
            #[serde(transparent)]
            struct Written<'a>(#[serde(serialize_with = "write")] &'a Payload);

            #[derive(Deserialize)]
            #[serde(transparent)]
            struct Read(#[serde(with = "super")] Payload);

            fn write<S: Serializer>(payload: &&Payload, to: S) -> Result<S::Ok, S::Error> {
                super::serialize(payload, to)
            }

            /// Writes a map of payloads in the recorded form.
            ///
            /// # Errors
            /// If there are too many values or levels in one, or as the serializer says.
            pub fn serialize<S: Serializer>(
                values: &BTreeMap<String, Payload>,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                to.collect_map(values.iter().map(|(key, value)| (key, Written(value))))
            }

            /// Reads a map of payloads in the recorded form.
            ///
            /// # Errors
            /// If one is not the recorded form of a payload, or as the deserializer says.
            pub fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<BTreeMap<String, Payload>, D::Error> {
                let values = BTreeMap::<String, Read>::deserialize(from)?;
                Ok(values
                    .into_iter()
                    .map(|(key, Read(value))| (key, value))
                    .collect())
            }
        }
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
        Writing::new(Form::Plain).write(self, to)
    }
}

/// The plain form.
impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Payload, D::Error> {
        Reading(Form::Plain).deserialize(from)
    }
}

/// One payload that is being written.
struct Writing {
    form: Form,
    /// How many more values may be written.
    values: Cell<usize>,
    refused: Cell<Option<Unwritable>>,
}

impl Writing {
    fn new(form: Form) -> Writing {
        Writing {
            form,
            values: Cell::new(MOST_VALUES),
            refused: Cell::new(None),
        }
    }

    fn write<S: Serializer>(&self, payload: &Payload, to: S) -> Result<S::Ok, S::Error> {
        let part = Part {
            payload,
            levels: MOST_LEVELS,
            writing: self,
        };
        part.serialize(to)
    }

    fn value(&self, payload: &Payload) -> Result<Value, Unwritable> {
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
    writing: &'a Writing,
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
        let writing = self.writing;
        let Some(left) = writing.values.get().checked_sub(1) else {
            return Err(writing.refuse(Unwritable::TooLarge(MOST_VALUES)));
        };
        writing.values.set(left);
        let is_recorded = writing.form != Form::Plain;
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
            Payload::Opaque(value) => match (value.downcast_ref::<Unrecorded>(), writing.form) {
                (Some(Unrecorded(name)), form) if form != Form::Plain => tagged(to, OPAQUE, name),
                (_, Form::RecordedOrTypeName) => tagged(to, OPAQUE, value.type_name()),
                _ => Err(writing.refuse(Unwritable::Opaque(value.type_name()))),
            },
            // One for this level, and one for a `$map`.
            Payload::List(_) | Payload::Map(_) if self.levels < 2 => {
                Err(writing.refuse(Unwritable::TooDeep(MOST_LEVELS)))
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

/// What is read: a value in one of the two forms.
#[derive(Clone, Copy)]
struct Reading(Form);

impl<'de> DeserializeSeed<'de> for Reading {
    type Value = Payload;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Payload, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading {
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

impl Reading {
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
        let reading = Reading(Form::Recorded);
        let Some(first) = entries.next_key()? else {
            return Ok(Payload::Map(BTreeMap::new().into()));
        };
        let value = entries.next_value_seed(reading)?;
        let entries = read_entries(reading, (first, value), entries)?;
        Ok(Payload::Map(entries.into()))
    }
}

fn read_entries<'de, A: MapAccess<'de>>(
    reading: Reading,
    first: (Arc<str>, Payload),
    mut entries: A,
) -> Result<BTreeMap<Arc<str>, Payload>, A::Error> {
    let mut map = BTreeMap::from([first]);
    while let Some(key) = entries.next_key()? {
        map.insert(key, entries.next_value_seed(reading)?);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_json_comes_back_as_it_was() {
        for value in [
            json!(null),
            json!(true),
            json!(3),
            json!(i64::MIN),
            json!(2.5),
            json!(1.0),
            json!("text"),
            json!([1, {"a": 2}, [], {}]),
            json!({"$bytes": "aGk="}),
            json!({"$bytes": "no base64!"}),
            json!({"$bytes": "aGk=", "more": 1}),
            json!({"$map": {"$pid": 1}}),
        ] {
            assert_eq!(Payload::from_json(value.clone()).to_json(), Ok(value));
        }
        assert_eq!(
            Payload::from_json(json!([{"$bytes": "aGk="}])),
            Payload::from(vec![Payload::from(b"hi".to_vec())])
        );
        assert_eq!(Payload::Float(f64::NAN).to_json(), Ok(Value::Null));
        let pid = "{orders|1.2}".parse().map(Payload::Pid).expect("a PID");
        assert_eq!(pid.to_json(), Ok(json!("{orders|1.2}")));
        assert_eq!(
            Payload::from(vec![Payload::object(1_u8)]).to_json(),
            Err(Unwritable::Opaque("u8"))
        );
    }

    #[test]
    fn what_is_recorded_comes_back_as_it_was() {
        let pid = "{berlin@orders|1.2}"
            .parse()
            .map(Payload::Pid)
            .expect("a PID");
        let values = [
            Payload::Nil,
            Payload::Bool(true),
            Payload::Int(i64::MIN),
            Payload::Float(1.0),
            Payload::Float(-0.0),
            Payload::Float(0.1 + 0.2),
            Payload::Float(f64::MIN_POSITIVE / 3.0),
            Payload::Float(f64::INFINITY),
            Payload::Float(f64::NEG_INFINITY),
            Payload::from("a \"b\"\n"),
            Payload::from(vec![0, 15, 255]),
            Payload::from(vec![Payload::Int(1), Payload::Nil]),
            Payload::map([("f", Payload::Int(1)), ("m", Payload::Nil)]),
            Payload::map([("$bytes", Payload::from("aGk="))]),
            Payload::map([("$map", Payload::map([("$map", Payload::Nil)]))]),
            Payload::map([("!", Payload::Nil), ("$", Payload::Nil), ("a", pid)]),
            Payload::map::<&str>([]),
            Payload::Pid("{orders|1.2}".parse().expect("a PID")),
            Payload::object(Unrecorded("geometry::Pose".to_owned())),
        ];
        for value in values {
            let text = value.to_recorded().expect("JSON").to_string();
            let read = serde_json::from_str(&text).expect("JSON");
            let read = Payload::from_recorded(read).expect("recorded");
            assert_eq!(read, value, "{text}");
            // 0.0 and -0.0 are equal, and yet not the same.
            assert_eq!(format!("{read:?}"), format!("{value:?}"));
        }
        let opaque = Payload::opaque(1_u8);
        assert_eq!(opaque.to_recorded(), Err(Unwritable::Opaque("u8")));
        let named = recorded::or_type_name::serialize(&opaque, serde_json::value::Serializer);
        assert_eq!(named.ok(), Some(json!({"$opaque": "u8"})));
        let read = Payload::from_recorded(json!([1, {"k": {"$opaque": "u8"}}])).expect("recorded");
        assert_eq!(read.unrecorded(), Some("u8"));
        let nan = Payload::Float(f64::NAN).to_recorded().expect("JSON");
        let nan = Payload::from_recorded(nan).expect("recorded");
        assert!(nan.as_f64().is_some_and(f64::is_nan));
    }

    #[test]
    fn what_was_not_recorded_is_refused() {
        for wrong in [
            json!({"$bytes": "0"}),
            json!({"$bytes": 1}),
            json!({"$float": "x"}),
            json!({"$pid": "x"}),
            json!({"$what": "x"}),
            json!({"$map": 1}),
            json!({"$pid": "{orders|1.2}", "more": 1}),
            json!([{"$map": [1]}]),
        ] {
            assert!(Payload::from_recorded(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_too_deep_or_too_large_is_refused() {
        let nested = |levels| (0..levels).fold(Payload::Nil, |inner, _| vec![inner].into());
        let deep = nested(MOST_LEVELS - 1);
        let text = deep.to_json().expect("not too deep").to_string();
        assert_eq!(serde_json::from_str::<Payload>(&text).ok(), Some(deep));
        let too_deep = Err(Unwritable::TooDeep(MOST_LEVELS));
        assert_eq!(nested(MOST_LEVELS).to_json(), too_deep);
        assert_eq!(nested(100_000).to_recorded(), too_deep);
        let maps = (0..60).fold(Payload::Nil, |inner, _| Payload::map([("$", inner)]));
        assert_eq!(maps.to_recorded(), too_deep);
        // 2^30 values.
        let shared = (0..30).fold(Payload::Nil, |part, _| vec![part.clone(), part].into());
        assert_eq!(shared.to_json(), Err(Unwritable::TooLarge(MOST_VALUES)));
    }
}

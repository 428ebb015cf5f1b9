//! JSON for scripts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mlua::{Lua, Value};
use serde_json::{Map, Number, Value as Json};
use windlass_value::Payload;

use crate::op::Refusal;
use crate::value::{ENTRIES, MapForm, MemoryBudget, fitting, form_of, to_payload};

/// A value as a text of JSON, which has to fit into what is left of the memory of the state.
pub(crate) fn encode(lua: &Lua, value: Option<&Value>) -> Result<Payload, Refusal> {
    let payload = to_payload(lua, value.unwrap_or(&Value::Nil));
    let payload = payload.map_err(|problem| ("json", problem.to_string()))?;
    let text = fitting(lua, |room| {
        check(&payload, 1, room)?;
        let mut text = JsonText {
            bytes: Vec::new(),
            room: std::mem::take(room),
        };
        let written = text.write(&payload);
        *room = text.room;
        written.map(|()| text.bytes)
    })?;
    let text = String::from_utf8(text).map_err(|problem| ("json", problem.to_string()))?;
    Ok(Payload::from(text))
}

/// A text of JSON that is being written. JSON shares nothing: a part of the value that is in
/// several places is written in each of them.
struct JsonText {
    bytes: Vec<u8>,
    room: MemoryBudget,
}

impl JsonText {
    fn write(&mut self, payload: &Payload) -> Result<(), Refusal> {
        match payload {
            Payload::List(values) => {
                self.add(b"[")?;
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        self.add(b",")?;
                    }
                    self.write(value)?;
                }
                self.add(b"]")
            }
            Payload::Map(entries) => {
                self.add(b"{")?;
                for (place, (key, value)) in named(entries)?.enumerate() {
                    if place > 0 {
                        self.add(b",")?;
                    }
                    self.add(Json::from(key).to_string().as_bytes())?;
                    self.add(b":")?;
                    self.write(value)?;
                }
                self.add(b"}")
            }
            leaf => {
                let leaf = document(leaf, &mut self.room)?;
                self.add(leaf.to_string().as_bytes())
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        // The text, the string that Lua makes of it, and what a growing buffer has too much.
        if !self.room.take(3 * bytes.len()) {
            return Err(("json", self.room.refusal().to_string()));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// As a document, which has to fit in here: a part that is in several places is copied to each of
/// them.
pub(crate) fn to_json(payload: &Payload, room: &mut MemoryBudget) -> Result<Json, Refusal> {
    check(payload, size_of::<Json>(), room)?;
    document(payload, room)
}

/// Refuses at once what cannot fit: parts that are in several places may be in 2^n.
fn check(payload: &Payload, per_value: usize, room: &mut MemoryBudget) -> Result<(), Refusal> {
    match expanded(payload, per_value, &mut HashMap::new()) <= room.left() {
        true => Ok(()),
        false => {
            room.exhaust();
            Err(("json", room.refusal().to_string()))
        }
    }
}

/// The least that a value takes where nothing is shared: so much for each value, and its texts.
fn expanded(payload: &Payload, per_value: usize, known: &mut HashMap<*const (), usize>) -> usize {
    let part = match payload {
        Payload::Text(text) => return text.len().saturating_add(per_value),
        Payload::List(values) => values.address(),
        Payload::Map(entries) => entries.address(),
        _ => return per_value,
    };
    if let Some(&bytes) = known.get(&part) {
        return bytes;
    }
    let bytes = match payload {
        Payload::List(values) => values.iter().fold(per_value, |bytes, value| {
            bytes.saturating_add(expanded(value, per_value, known))
        }),
        Payload::Map(entries) => entries.iter().fold(per_value, |bytes, (key, value)| {
            let entry = expanded(value, per_value, known).saturating_add(key.len());
            bytes.saturating_add(entry)
        }),
        _ => per_value,
    };
    known.insert(part, bytes);
    bytes
}

fn document(payload: &Payload, room: &mut MemoryBudget) -> Result<Json, Refusal> {
    let text = |text: &str, room: &mut MemoryBudget| match room.take(text.len()) {
        true => Ok(text.to_owned()),
        false => Err(("json", room.refusal().to_string())),
    };
    if !room.take(size_of::<Json>()) {
        return Err(("json", room.refusal().to_string()));
    }
    Ok(match payload {
        Payload::Nil => Json::Null,
        Payload::Bool(value) => Json::Bool(*value),
        Payload::Int(value) => Json::Number((*value).into()),
        Payload::Float(value) => {
            let number = Number::from_f64(*value);
            Json::Number(number.ok_or(("json", format!("JSON has no number {value}")))?)
        }
        Payload::Text(value) => Json::String(text(value, room)?),
        Payload::List(values) => {
            let values: Result<Vec<_>, _> = values.iter().map(|v| document(v, room)).collect();
            Json::Array(values?)
        }
        Payload::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in named(entries)? {
                map.insert(text(key, room)?, document(value, room)?);
            }
            Json::Object(map)
        }
        Payload::Pid(pid) => Json::String(pid.to_string()),
        _ => {
            return Err((
                "json",
                "JSON has no bytes: encode them as text first".to_owned(),
            ));
        }
    })
}

/// The texts and values that an object has.
fn named(
    entries: &BTreeMap<Arc<str>, Payload>,
) -> Result<impl Iterator<Item = (&str, &Payload)>, Refusal> {
    let (reserved, entries) = match form_of(entries) {
        MapForm::Named => (None, Some(entries)),
        MapForm::Reserved(value) => (Some((ENTRIES, value)), None),
        MapForm::Mixed => {
            let problem = "JSON has no table whose keys are neither 1 to n nor texts";
            return Err(("json", problem.to_owned()));
        }
    };
    let entries = entries.into_iter().flatten();
    Ok(reserved
        .into_iter()
        .chain(entries.map(|(key, value)| (&**key, value))))
}

/// What JSON says; null is `json.null`.
pub(crate) fn decode(lua: &Lua, text: &str) -> Result<Value, Refusal> {
    let json: Json = serde_json::from_str(text).map_err(|problem| ("json", problem.to_string()))?;
    to_value(lua, &json).map_err(|problem| ("json", problem.to_string()))
}

pub(crate) fn to_value(lua: &Lua, json: &Json) -> mlua::Result<Value> {
    Ok(match json {
        Json::Null => Value::NULL,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::Integer(whole),
            (None, float) => Value::Number(float.unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(lua.create_string(text)?),
        Json::Array(values) => {
            let table = lua.create_table_with_capacity(values.len(), 0)?;
            for (place, value) in values.iter().enumerate() {
                table.raw_set(place + 1, to_value(lua, value)?)?;
            }
            Value::Table(table)
        }
        Json::Object(entries) => {
            let table = lua.create_table_with_capacity(0, entries.len())?;
            for (key, value) in entries {
                table.raw_set(key.as_str(), to_value(lua, value)?)?;
            }
            Value::Table(table)
        }
    })
}

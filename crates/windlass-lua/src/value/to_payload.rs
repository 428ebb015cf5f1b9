//! From values of Lua to payloads.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mlua::{AnyUserData, Lua, Table, Value};
use windlass_value::Payload;

use super::sort_key::SortKey;
use super::unsendable::SENDABLE;
use super::userdata::OpaqueValue;
use super::{Buffer, ENTRIES, LuaPid, MemoryBudget, Unsendable, fitting};

/// How deep tables may be inside of each other that are sent.
const DEEPEST: usize = 64;

/// What an entry of a map takes, beside its key and its value.
const ENTRY: usize = 32;

/// As a payload.
pub(crate) fn to_payload(lua: &Lua, value: &Value) -> Result<Payload, Unsendable> {
    fitting(lua, |room| {
        let mut conversion = Conversion {
            way: Vec::new(),
            done: HashMap::new(),
            room: std::mem::take(room),
        };
        let converted = conversion.convert(value);
        *room = conversion.room;
        converted
    })
}

/// One value on its way to a payload.
struct Conversion {
    way: ValuePath,
    /// Tables that were converted, by address.
    done: HashMap<*const std::ffi::c_void, Payload>,
    room: MemoryBudget,
}

/// The way to a value, for the message if it cannot be sent.
type ValuePath = Vec<(Key, *const std::ffi::c_void)>;

enum Key {
    Text(String),
    Index(i64),
    Other,
}

fn unsendable(what: impl Into<String>, way: &ValuePath) -> Unsendable {
    let mut path = String::new();
    for (key, _) in way {
        match key {
            Key::Text(text) => path.push_str(&format!(".{text}")),
            Key::Index(index) => path.push_str(&format!("[{index}]")),
            Key::Other => path.push_str("[?]"),
        }
    }
    Unsendable {
        what: what.into(),
        path,
        advice: SENDABLE,
    }
}

impl Conversion {
    fn take(&mut self, bytes: usize) -> Result<(), Unsendable> {
        match self.room.take(bytes) {
            true => Ok(()),
            false => Err(self.room.refusal()),
        }
    }

    fn convert(&mut self, value: &Value) -> Result<Payload, Unsendable> {
        self.take(size_of::<Payload>())?;
        Ok(match value {
            Value::Nil => Payload::Nil,
            Value::Boolean(value) => Payload::Bool(*value),
            Value::Integer(value) => Payload::Int(*value),
            Value::Number(value) => Payload::Float(*value),
            Value::String(text) => {
                let bytes = text.as_bytes();
                self.take(bytes.len())?;
                match std::str::from_utf8(&bytes) {
                    Ok(text) => Payload::Text(text.into()),
                    Err(_) => Payload::Bytes((&*bytes).into()),
                }
            }
            Value::Table(table) => self.convert_table(table)?,
            value if value.is_null() => Payload::Nil,
            Value::UserData(data) => match of_userdata(data) {
                Some(payload) => payload,
                None => return Err(unsendable("userdata", &self.way)),
            },
            other => return Err(unsendable(format!("a {}", other.type_name()), &self.way)),
        })
    }

    /// What is inside of a table.
    fn inside(
        &mut self,
        table: *const std::ffi::c_void,
        key: Key,
        value: &Value,
    ) -> Result<Payload, Unsendable> {
        self.way.push((key, table));
        let converted = self.convert(value);
        self.way.pop();
        converted
    }

    fn convert_table(&mut self, table: &Table) -> Result<Payload, Unsendable> {
        let this = table.to_pointer();
        if let Some(done) = self.done.get(&this) {
            return Ok(done.clone());
        }
        let converted = self.convert_new_table(table, this)?;
        // The first of all is reached once, or contains itself.
        if !self.way.is_empty() {
            self.take(size_of::<(usize, Payload)>())?;
            self.done.insert(this, converted.clone());
        }
        Ok(converted)
    }
}

fn of_userdata(data: &AnyUserData) -> Option<Payload> {
    if let Ok(pid) = data.borrow::<LuaPid>() {
        return Some(Payload::Pid(pid.0));
    }
    if let Ok(buffer) = data.borrow::<Buffer>() {
        return Some(Payload::Bytes(buffer.0.clone()));
    }
    let opaque = data.borrow::<OpaqueValue>().ok()?;
    Some(opaque.0.clone())
}

impl Conversion {
    fn convert_new_table(
        &mut self,
        table: &Table,
        this: *const std::ffi::c_void,
    ) -> Result<Payload, Unsendable> {
        let way = &self.way;
        if way.iter().any(|(_, above)| *above == this) {
            return Err(unsendable("a table that contains itself", way));
        }
        if way.len() >= DEEPEST {
            return Err(unsendable(
                format!("a table more than {DEEPEST} levels deep"),
                way,
            ));
        }
        if let Some(meta) = table.metatable()
            && meta.raw_get::<bool>("__unsendable").unwrap_or(false)
        {
            let name = meta.raw_get::<String>("__name").unwrap_or_default();
            return Err(unsendable(format!("a {name}"), way));
        }
        // The keys are 1 to n if all are whole numbers from 1 on, and the greatest is their count.
        // The length says less: that of {1, 2, nil, 4, x = 5} is 4, and so is the count of its
        // keys.
        let (mut count, mut texts, mut indices, mut greatest) = (0, 0, 0, 0);
        let mut is_reserved = false;
        for pair in table.pairs::<Value, Value>() {
            let (key, _) = pair.map_err(|error| Unsendable {
                what: error.to_string(),
                path: String::new(),
                advice: SENDABLE,
            })?;
            count += 1;
            match key {
                Value::String(text) => {
                    texts += 1;
                    is_reserved = *text.as_bytes() == *ENTRIES.as_bytes();
                }
                Value::Integer(index @ 1..) => {
                    indices += 1;
                    greatest = greatest.max(index as usize);
                }
                _ => {}
            }
        }
        if count > 0 && indices == count && greatest == count {
            let mut list = Vec::with_capacity(count);
            for index in 1..=count {
                let value = table.raw_get::<Value>(index).unwrap_or(Value::Nil);
                list.push(self.inside(this, Key::Index(index as i64), &value)?);
            }
            return Ok(Payload::List(list.into()));
        }
        // As a map this would be taken for the form of other tables.
        let is_reserved = is_reserved && count == 1;
        let has_names = texts == count && !is_reserved;
        let mut map = BTreeMap::new();
        let mut entries = Vec::new();
        for (key, value) in table.pairs::<Value, Value>().flatten() {
            let step = match &key {
                Value::String(text) => Key::Text(text.to_string_lossy()),
                Value::Integer(index) => Key::Index(*index),
                _ => Key::Other,
            };
            let name = match &key {
                Value::String(text) if has_names => {
                    text.to_str().ok().map(|text| Arc::from(&*text))
                }
                _ => None,
            };
            self.take(ENTRY)?;
            let value = self.inside(this, step, &value)?;
            match name {
                Some(name) => {
                    self.take(str::len(&name))?;
                    map.insert(name, value);
                }
                None => {
                    if key.is_null() {
                        return Err(unsendable("json.null as a key", &self.way));
                    }
                    let key = self.inside(this, Key::Other, &key)?;
                    entries.push((key, value));
                }
            }
        }
        if entries.is_empty() {
            return Ok(Payload::Map(map.into()));
        }
        // Keys of several kinds: all of them, in an order that does not depend on where they are in
        // memory.
        entries.extend(
            map.into_iter()
                .map(|(key, value)| (Payload::Text(key), value)),
        );
        let mut sorted = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let by = SortKey::of(&key);
            self.take(by.bytes())?;
            sorted.push((by, key, value));
        }
        sorted.sort_by(|(by, ..), (other, ..)| by.cmp(other));
        let flat: Vec<Payload> = sorted
            .into_iter()
            .flat_map(|(_, key, value)| [key, value])
            .collect();
        Ok(Payload::map([(ENTRIES, Payload::List(flat.into()))]))
    }
}

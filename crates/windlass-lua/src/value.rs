//! From Lua's values to payloads, and back: what can be sent.
//!
//! | Lua | payload |
//! |---|---|
//! | nil, boolean, integer, float | the same |
//! | string | text, or bytes if it is not UTF-8 |
//! | table with the keys 1 to n | a list |
//! | table with text keys, or empty | a map |
//! | table with other keys | a map with the one entry `#entries`: keys and values in turn |
//! | PID, buffer | a PID, bytes (which arrive as a string) |
//! | `json.null` | nil |
//!
//! Functions, coroutines, channels and other userdata cannot be sent, and no table that contains itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mlua::{AnyUserData, IntoLua, Lua, MetaMethod, Table, UserData, UserDataMethods, Value};
use windlass_process::{Payload, Pid};

/// How deep tables may be inside of each other.
const DEEPEST: usize = 64;

/// The one entry of a table whose keys are neither 1 to n nor texts.
const ENTRIES: &str = "#entries";

/// A value that cannot be sent, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsendable {
    what: String,
    path: String,
}

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be sent", self.what)?;
        if !self.path.is_empty() {
            write!(f, " (at {})", self.path)?;
        }
        f.write_str(": send numbers, strings, booleans, PIDs, buffers, and tables of those")
    }
}

impl std::error::Error for Unsendable {}

/// As a payload.
pub(crate) fn to_payload(value: &Value) -> Result<Payload, Unsendable> {
    convert(value, &mut Vec::new())
}

/// The way to a value, for the message if it cannot be sent.
type Way = Vec<(Key, *const std::ffi::c_void)>;

enum Key {
    Text(String),
    Index(i64),
    Other,
}

fn unsendable(what: impl Into<String>, way: &Way) -> Unsendable {
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
    }
}

fn convert(value: &Value, way: &mut Way) -> Result<Payload, Unsendable> {
    Ok(match value {
        Value::Nil => Payload::Nil,
        Value::Boolean(value) => Payload::Bool(*value),
        Value::Integer(value) => Payload::Int(*value),
        Value::Number(value) => Payload::Float(*value),
        Value::String(text) => {
            let bytes = text.as_bytes();
            match std::str::from_utf8(&bytes) {
                Ok(text) => Payload::Text(text.into()),
                Err(_) => Payload::Bytes((&*bytes).into()),
            }
        }
        Value::Table(table) => convert_table(table, way)?,
        value if value.is_null() => Payload::Nil,
        Value::UserData(data) => match of_userdata(data) {
            Some(payload) => payload,
            None => return Err(unsendable("userdata", way)),
        },
        other => return Err(unsendable(format!("a {}", other.type_name()), way)),
    })
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

fn convert_table(table: &Table, way: &mut Way) -> Result<Payload, Unsendable> {
    let this = table.to_pointer();
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
    let mut inside = |key: Key, value: &Value| {
        way.push((key, this));
        let converted = convert(value, way);
        way.pop();
        converted
    };
    let length = table.raw_len();
    let mut count = 0;
    let mut texts = 0;
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair.map_err(|error| Unsendable {
            what: error.to_string(),
            path: String::new(),
        })?;
        count += 1;
        texts += usize::from(matches!(key, Value::String(_)));
    }
    if length == count && count > 0 {
        let mut list = Vec::with_capacity(length);
        for index in 1..=length {
            let value = table.raw_get::<Value>(index).unwrap_or(Value::Nil);
            list.push(inside(Key::Index(index as i64), &value)?);
        }
        return Ok(Payload::List(list.into()));
    }
    let mut map = BTreeMap::new();
    let mut entries = Vec::new();
    for (key, value) in table.pairs::<Value, Value>().flatten() {
        let step = match &key {
            Value::String(text) => Key::Text(text.to_string_lossy()),
            Value::Integer(index) => Key::Index(*index),
            _ => Key::Other,
        };
        let name = match &key {
            Value::String(text) if texts == count => {
                text.to_str().ok().map(|text| Arc::from(&*text))
            }
            _ => None,
        };
        let value = inside(step, &value)?;
        match name {
            Some(name) => {
                map.insert(name, value);
            }
            None => {
                let key = inside(Key::Other, &key)?;
                entries.push((key, value));
            }
        }
    }
    if entries.is_empty() {
        return Ok(Payload::Map(Arc::new(map)));
    }
    // Keys of several kinds: all of them, in an order that does not depend on where they are in memory.
    entries.extend(
        map.into_iter()
            .map(|(key, value)| (Payload::Text(key), value)),
    );
    entries.sort_by_key(|(key, _)| format!("{key:?}"));
    let flat: Vec<Payload> = entries
        .into_iter()
        .flat_map(|(key, value)| [key, value])
        .collect();
    Ok(Payload::map([(ENTRIES, Payload::List(flat.into()))]))
}

/// Whether this is a table whose keys are neither 1 to n nor texts.
pub(crate) fn is_mixed(entries: &BTreeMap<Arc<str>, Payload>) -> bool {
    entries.len() == 1 && entries.contains_key(ENTRIES)
}

/// As a value of Lua.
pub(crate) fn to_lua(lua: &Lua, payload: &Payload) -> mlua::Result<Value> {
    Ok(match payload {
        Payload::Nil => Value::Nil,
        Payload::Bool(value) => Value::Boolean(*value),
        Payload::Int(value) => Value::Integer(*value),
        Payload::Float(value) => Value::Number(*value),
        Payload::Text(text) => Value::String(lua.create_string(text.as_bytes())?),
        Payload::Bytes(bytes) => Value::String(lua.create_string(bytes)?),
        Payload::List(values) => {
            let table = lua.create_table_with_capacity(values.len(), 0)?;
            for (place, value) in values.iter().enumerate() {
                table.raw_set(place + 1, to_lua(lua, value)?)?;
            }
            Value::Table(table)
        }
        Payload::Map(entries) => match entries.get(ENTRIES).and_then(Payload::as_list) {
            Some(flat) if entries.len() == 1 && flat.len() % 2 == 0 => {
                let table = lua.create_table_with_capacity(0, flat.len() / 2)?;
                for pair in flat.chunks_exact(2) {
                    let key = to_lua(lua, &pair[0])?;
                    if !key.is_nil() {
                        table.raw_set(key, to_lua(lua, &pair[1])?)?;
                    }
                }
                Value::Table(table)
            }
            _ => {
                let table = lua.create_table_with_capacity(0, entries.len())?;
                for (key, value) in entries.iter() {
                    table.raw_set(lua.create_string(key.as_bytes())?, to_lua(lua, value)?)?;
                }
                Value::Table(table)
            }
        },
        Payload::Pid(pid) => LuaPid(*pid).into_lua(lua)?,
        // What only Rust code looks into.
        _ => OpaqueValue(payload.clone()).into_lua(lua)?,
    })
}

/// A PID in Lua.
#[derive(Clone, Copy)]
pub(crate) struct LuaPid(pub(crate) Pid);

impl UserData for LuaPid {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, pid, ()| Ok(pid.0.to_string()));
        methods.add_meta_method(MetaMethod::Eq, |_, pid, other: AnyUserData| {
            Ok(other.borrow::<LuaPid>().is_ok_and(|other| other.0 == pid.0))
        });
    }
}

/// Bytes that are shared instead of copied, however often they are sent.
pub(crate) struct Buffer(pub(crate) Arc<[u8]>);

impl UserData for Buffer {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Len, |_, buffer, ()| Ok(buffer.0.len()));
        methods.add_meta_method(MetaMethod::ToString, |lua, buffer, ()| {
            lua.create_string(&buffer.0)
        });
        methods.add_meta_method(MetaMethod::Eq, |_, buffer, other: AnyUserData| {
            Ok(other
                .borrow::<Buffer>()
                .is_ok_and(|other| other.0 == buffer.0))
        });
        methods.add_method("sub", |lua, buffer, (from, to): (i64, Option<i64>)| {
            let length = buffer.0.len() as i64;
            let place = |at: i64| if at < 0 { (length + at + 1).max(0) } else { at };
            let (from, to) = (place(from).max(1), place(to.unwrap_or(-1)).min(length));
            match from <= to {
                true => lua.create_string(&buffer.0[from as usize - 1..to as usize]),
                false => lua.create_string(""),
            }
        });
    }
}

/// A Rust value on its way through Lua.
struct OpaqueValue(Payload);

impl UserData for OpaqueValue {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, _, ()| {
            Ok("opaque value of the host")
        });
    }
}

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
//!
//! A table that is reached in several ways is converted once, and arrives as one table: a value of
//! a few tables can have 2^n ways through it. What a value takes as a payload is memory of the
//! host, which the limit of the Lua state does not see: it has to fit into what is left of that
//! limit ([`Room`]).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use mlua::{AnyUserData, IntoLua, Lua, MetaMethod, Table, UserData, UserDataMethods, Value};
use windlass_process::{Payload, Pid};

/// How deep tables may be inside of each other.
const DEEPEST: usize = 64;

/// What an entry of a map takes, beside its key and its value.
const ENTRY: usize = 32;

/// The one entry of a table whose keys are neither 1 to n nor texts.
const ENTRIES: &str = "#entries";

/// A value that cannot be sent, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsendable {
    what: String,
    path: String,
    advice: &'static str,
}

const SENDABLE: &str = "send numbers, strings, booleans, PIDs, buffers, and tables of those";

const TOO_LARGE: &str = "it has to fit into what is left of the memory of its process: send less at once, or raise that";

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be sent", self.what)?;
        if !self.path.is_empty() {
            write!(f, " (at {})", self.path)?;
        }
        write!(f, ": {}", self.advice)
    }
}

impl std::error::Error for Unsendable {}

/// The bytes that a Lua state may have; kept in the state.
pub(crate) struct MemoryLimit(pub(crate) usize);

/// What a value may take of the host's memory: what is left of the limit of its state.
#[derive(Default)]
pub(crate) struct Room {
    left: usize,
    whole: usize,
    /// Something did not fit.
    is_over: bool,
}

impl Room {
    pub(crate) fn of(lua: &Lua) -> Room {
        let limit = lua.app_data_ref::<MemoryLimit>();
        let limit = limit.map_or(usize::MAX, |limit| limit.0);
        let whole = limit.saturating_sub(lua.used_memory());
        Room {
            left: whole,
            whole,
            is_over: false,
        }
    }

    /// What is left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Something was found not to fit.
    pub(crate) fn exhaust(&mut self) {
        self.is_over = true;
    }

    /// Takes so many bytes. False: there are not as many.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.is_over = true;
                false
            }
        }
    }

    /// What is said of a value that does not fit.
    pub(crate) fn refusal(&self) -> Unsendable {
        Unsendable {
            what: format!("a value that takes more than {} bytes", self.whole),
            path: String::new(),
            advice: TOO_LARGE,
        }
    }
}

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

/// Makes something that has to fit. If it does not, the garbage of the state is collected first.
pub(crate) fn fitting<T, E>(
    lua: &Lua,
    mut make: impl FnMut(&mut Room) -> Result<T, E>,
) -> Result<T, E> {
    let mut room = Room::of(lua);
    let made = make(&mut room);
    if made.is_ok() || !room.is_over || lua.gc_collect().is_err() {
        return made;
    }
    make(&mut Room::of(lua))
}

/// One value on its way to a payload.
struct Conversion {
    way: Way,
    /// Tables that were converted, by address.
    done: HashMap<*const std::ffi::c_void, Payload>,
    room: Room,
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
        let length = table.raw_len();
        let mut count = 0;
        let mut texts = 0;
        for pair in table.pairs::<Value, Value>() {
            let (key, _) = pair.map_err(|error| Unsendable {
                what: error.to_string(),
                path: String::new(),
                advice: SENDABLE,
            })?;
            count += 1;
            texts += usize::from(matches!(key, Value::String(_)));
        }
        if length == count && count > 0 {
            let mut list = Vec::with_capacity(length);
            for index in 1..=length {
                let value = table.raw_get::<Value>(index).unwrap_or(Value::Nil);
                list.push(self.inside(this, Key::Index(index as i64), &value)?);
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
            self.take(ENTRY)?;
            let value = self.inside(this, step, &value)?;
            match name {
                Some(name) => {
                    self.take(str::len(&name))?;
                    map.insert(name, value);
                }
                None => {
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
        entries.sort_by_cached_key(|(key, _)| format!("{key:?}"));
        let flat: Vec<Payload> = entries
            .into_iter()
            .flat_map(|(key, value)| [key, value])
            .collect();
        Ok(Payload::map([(ENTRIES, Payload::List(flat.into()))]))
    }
}

/// Whether this is a table whose keys are neither 1 to n nor texts.
pub(crate) fn is_mixed(entries: &BTreeMap<Arc<str>, Payload>) -> bool {
    entries.len() == 1 && entries.contains_key(ENTRIES)
}

/// As a value of Lua. What is in it in several places is one table.
pub(crate) fn to_lua(lua: &Lua, payload: &Payload) -> mlua::Result<Value> {
    revive(lua, payload, &mut HashMap::new())
}

/// The tables that were made of shared parts, by the address of the part.
type Revived = HashMap<*const (), Table>;

fn revive(lua: &Lua, payload: &Payload, revived: &mut Revived) -> mlua::Result<Value> {
    // A part that is nowhere else is met once.
    let shared = match payload {
        Payload::List(values) if values.is_shared() => Some(values.address()),
        Payload::Map(entries) if entries.is_shared() => Some(entries.address()),
        _ => None,
    };
    let Some(part) = shared else {
        return revive_new(lua, payload, revived);
    };
    if let Some(table) = revived.get(&part) {
        return Ok(Value::Table(table.clone()));
    }
    let value = revive_new(lua, payload, revived)?;
    if let Value::Table(table) = &value {
        revived.insert(part, table.clone());
    }
    Ok(value)
}

fn revive_new(lua: &Lua, payload: &Payload, revived: &mut Revived) -> mlua::Result<Value> {
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
                table.raw_set(place + 1, revive(lua, value, revived)?)?;
            }
            Value::Table(table)
        }
        Payload::Map(entries) => match entries.get(ENTRIES).and_then(Payload::as_list) {
            Some(flat) if entries.len() == 1 && flat.len() % 2 == 0 => {
                let table = lua.create_table_with_capacity(0, flat.len() / 2)?;
                for pair in flat.chunks_exact(2) {
                    let key = revive(lua, &pair[0], revived)?;
                    if !key.is_nil() {
                        table.raw_set(key, revive(lua, &pair[1], revived)?)?;
                    }
                }
                Value::Table(table)
            }
            _ => {
                let table = lua.create_table_with_capacity(0, entries.len())?;
                for (key, value) in entries.iter() {
                    table.raw_set(
                        lua.create_string(key.as_bytes())?,
                        revive(lua, value, revived)?,
                    )?;
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

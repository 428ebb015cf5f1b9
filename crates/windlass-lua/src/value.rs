//! From Lua's values to payloads, and back: what can be sent.
//!
//! | Lua | payload |
//! |---|---|
//! | nil, boolean, integer, float | the same |
//! | string | text, or bytes if it is not UTF-8 |
//! | table with the keys 1 to n | a list |
//! | table with text keys, or empty | a map |
//! | table with other keys | a map with the one entry `#entries`: keys and values in turn |
//! | table with the one key `#entries` | the same, so that it is not taken for the form above |
//! | PID, buffer | a PID, bytes (which arrive as a string) |
//! | `json.null` | nil |
//!
//! Functions, coroutines, channels and other userdata cannot be sent, and no table that contains itself.
//!
//! A table that is reached in several ways is converted once, and arrives as one table: a value of
//! a few tables can have 2^n ways through it. What a value takes as a payload is memory of the
//! host, which the limit of the Lua state does not see: it has to fit into what is left of that
//! limit ([`Room`]).
//!
//! What arrives may come from anywhere: from another script, from Rust code, from another node, from
//! a recording. A map with the one entry `#entries` that no table can have (an odd number of values,
//! nil or NaN as a key) arrives as a table with the key `#entries`. A value that is too deep or does
//! not fit into the memory of the receiver is an error that the receiver can catch; the machine sees
//! to that.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};
use std::sync::Arc;

use mlua::{AnyUserData, IntoLua, Lua, MetaMethod, Table, UserData, UserDataMethods, Value};
use windlass_actor::{Payload, Pid};

/// How deep tables may be inside of each other that are sent.
const DEEPEST: usize = 64;

/// How deep tables may be inside of each other that arrive: as deep as JSON is read. Each level is a
/// call, and a message from Rust code can have more levels than the stack has room for.
const DEEPEST_ARRIVAL: usize = 128;

/// Bytes of the text that tables which are keys are sorted by.
const SORTED_BY: usize = 256;

/// What an entry of a map takes, beside its key and its value.
const ENTRY: usize = 32;

/// The one entry of the map that a table is whose keys are neither 1 to n nor texts.
pub(crate) const ENTRIES: &str = "#entries";

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
        // The keys are 1 to n if all are whole numbers from 1 on, and the greatest is their count. The
        // length says less: that of {1, 2, nil, 4, x = 5} is 4, and so is the count of its keys.
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

/// What a key is sorted by. Texts by all of their bytes; tables by the beginning of what they are
/// written as: a table that is reached in several ways is written in each of them, which can take
/// more memory than the process has.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Other(Box<str>),
}

impl SortKey {
    fn of(key: &Payload) -> SortKey {
        match key {
            Payload::Text(text) => SortKey::Text(text.clone()),
            Payload::Bytes(bytes) => SortKey::Bytes(bytes.clone()),
            other => {
                let mut beginning = Beginning(String::new());
                // An error: there is enough.
                let _ = write!(beginning, "{other:?}");
                SortKey::Other(beginning.0.into())
            }
        }
    }

    /// What it takes beside the key itself.
    fn bytes(&self) -> usize {
        match self {
            SortKey::Other(text) => size_of::<SortKey>() + text.len(),
            _ => size_of::<SortKey>(),
        }
    }
}

/// Takes the beginning of a text, and refuses the rest.
struct Beginning(String);

impl fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = SORTED_BY.saturating_sub(self.0.len());
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        match room > text.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

/// What a map stands for that was made of a table.
pub(crate) enum Form<'a> {
    /// Its entries.
    Named,
    /// The one entry `#entries`, with this value.
    Reserved(&'a Payload),
    /// A table whose keys are neither 1 to n nor texts.
    Mixed,
}

/// What this map stands for, if it was made of a table.
pub(crate) fn form_of(entries: &BTreeMap<Arc<str>, Payload>) -> Form<'_> {
    let flat = match entries.get(ENTRIES) {
        Some(flat) if entries.len() == 1 => flat.as_list().unwrap_or_default(),
        _ => return Form::Named,
    };
    match flat {
        [Payload::Text(key), value] if **key == *ENTRIES => Form::Reserved(value),
        _ => Form::Mixed,
    }
}

/// The keys and values in turn that a map stands for; None if it is a map as any other. Only of
/// keys that a table can have.
fn keys_and_values(entries: &BTreeMap<Arc<str>, Payload>) -> Option<&[Payload]> {
    let flat = entries.get(ENTRIES)?.as_list()?;
    let is_key = |key: &Payload| match key {
        Payload::Nil => false,
        Payload::Float(number) => !number.is_nan(),
        _ => true,
    };
    let fits =
        entries.len() == 1 && flat.len().is_multiple_of(2) && flat.iter().step_by(2).all(is_key);
    fits.then_some(flat)
}

/// As a value of Lua. What is in it in several places is one table.
///
/// Fails if the value is too deep, or the memory of the state is not enough.
pub(crate) fn to_lua(lua: &Lua, payload: &Payload) -> mlua::Result<Value> {
    arrive(lua, payload, Value::Nil)
}

/// As `to_lua`, but nil is `json.null`: what another component says with a list or an object has the
/// length and the keys that it said.
pub(crate) fn to_lua_with_null(lua: &Lua, payload: &Payload) -> mlua::Result<Value> {
    arrive(lua, payload, Value::NULL)
}

fn arrive(lua: &Lua, payload: &Payload, nil: Value) -> mlua::Result<Value> {
    let mut arrival = Arrival {
        lua,
        nil,
        depth: 0,
        places: HashMap::new(),
        tables: None,
    };
    arrival.revive(payload)
}

/// One payload on its way to a value.
struct Arrival<'a> {
    lua: &'a Lua,
    /// The value of Lua that stands for `Payload::Nil`.
    nil: Value,
    /// Tables that this part is inside of.
    depth: usize,
    /// Where the tables are in `tables` that were made of shared parts, by the address of the part.
    places: HashMap<*const (), usize>,
    /// Those tables. Lua has them: a state has room for a million references from here, and a
    /// message can have more shared parts.
    tables: Option<Table>,
}

impl Arrival<'_> {
    fn revive(&mut self, payload: &Payload) -> mlua::Result<Value> {
        // A part that is nowhere else is met once.
        let shared = match payload {
            Payload::List(values) if values.is_shared() => Some(values.address()),
            Payload::Map(entries) if entries.is_shared() => Some(entries.address()),
            _ => None,
        };
        let Some(part) = shared else {
            return self.revive_new(payload);
        };
        if let (Some(place), Some(tables)) = (self.places.get(&part), &self.tables) {
            return tables.raw_get(*place);
        }
        let value = self.revive_new(payload)?;
        let tables = match &self.tables {
            Some(tables) => tables,
            None => self.tables.insert(self.lua.create_table()?),
        };
        let place = self.places.len() + 1;
        tables.raw_set(place, &value)?;
        self.places.insert(part, place);
        Ok(value)
    }

    fn revive_new(&mut self, payload: &Payload) -> mlua::Result<Value> {
        let lua = self.lua;
        Ok(match payload {
            Payload::Nil => self.nil.clone(),
            Payload::Bool(value) => Value::Boolean(*value),
            Payload::Int(value) => Value::Integer(*value),
            Payload::Float(value) => Value::Number(*value),
            Payload::Text(text) => Value::String(lua.create_string(text.as_bytes())?),
            Payload::Bytes(bytes) => Value::String(lua.create_string(bytes)?),
            Payload::List(_) | Payload::Map(_) => {
                if self.depth == DEEPEST_ARRIVAL {
                    return Err(mlua::Error::runtime(format!(
                        "it has tables more than {DEEPEST_ARRIVAL} levels deep"
                    )));
                }
                self.depth += 1;
                let table = self.revive_table(payload)?;
                self.depth -= 1;
                Value::Table(table)
            }
            Payload::Pid(pid) => LuaPid(*pid).into_lua(lua)?,
            // What only Rust code looks into.
            _ => OpaqueValue(payload.clone()).into_lua(lua)?,
        })
    }

    fn revive_table(&mut self, payload: &Payload) -> mlua::Result<Table> {
        let lua = self.lua;
        match payload {
            Payload::List(values) => {
                let table = lua.create_table_with_capacity(values.len(), 0)?;
                for (place, value) in values.iter().enumerate() {
                    table.raw_set(place + 1, self.revive(value)?)?;
                }
                Ok(table)
            }
            Payload::Map(entries) => match keys_and_values(entries) {
                Some(flat) => {
                    let table = lua.create_table_with_capacity(0, flat.len() / 2)?;
                    for pair in flat.chunks_exact(2) {
                        let key = self.revive(&pair[0])?;
                        table.raw_set(key, self.revive(&pair[1])?)?;
                    }
                    Ok(table)
                }
                None => {
                    let table = lua.create_table_with_capacity(0, entries.len())?;
                    for (key, value) in entries.iter() {
                        let key = lua.create_string(key.as_bytes())?;
                        table.raw_set(key, self.revive(value)?)?;
                    }
                    Ok(table)
                }
            },
            _ => lua.create_table(),
        }
    }
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

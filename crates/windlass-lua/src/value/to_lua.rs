//! From payloads to values of Lua.

use std::collections::HashMap;

use mlua::{IntoLua, Lua, Table, Value};
use windlass_value::Payload;

use super::LuaPid;
use super::map_form::keys_and_values;
use super::userdata::OpaqueValue;

/// How deep tables may be inside of each other that arrive: as deep as JSON is read. Each level is
/// a call, and a message from Rust code can have more levels than the stack has room for.
const DEEPEST_ARRIVAL: usize = 128;

/// As a value of Lua. What is in it in several places is one table.
///
/// Fails if the value is too deep, or the memory of the state is not enough.
pub(crate) fn to_lua(lua: &Lua, payload: &Payload) -> mlua::Result<Value> {
    arrive(lua, payload, Value::Nil)
}

/// As `to_lua`, but nil is `json.null`: what another component says with a list or an object has
/// the length and the keys that it said.
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

//! JSON for scripts.

use mlua::{Lua, Value};
use serde_json::{Map, Number, Value as Json};
use windlass_process::Payload;

use crate::op::Refusal;
use crate::value::{is_mixed, to_payload};

/// A value as JSON.
pub(crate) fn encode(value: Option<&Value>) -> Result<Payload, Refusal> {
    let payload = to_payload(value.unwrap_or(&Value::Nil));
    let payload = payload.map_err(|problem| ("json", problem.to_string()))?;
    Ok(Payload::from(to_json(&payload)?.to_string()))
}

pub(crate) fn to_json(payload: &Payload) -> Result<Json, Refusal> {
    Ok(match payload {
        Payload::Nil => Json::Null,
        Payload::Bool(value) => Json::Bool(*value),
        Payload::Int(value) => Json::Number((*value).into()),
        Payload::Float(value) => {
            let number = Number::from_f64(*value);
            Json::Number(number.ok_or(("json", format!("JSON has no number {value}")))?)
        }
        Payload::Text(text) => Json::String(text.to_string()),
        Payload::List(values) => {
            let values: Result<Vec<_>, _> = values.iter().map(to_json).collect();
            Json::Array(values?)
        }
        Payload::Map(entries) if is_mixed(entries) => {
            let problem = "JSON has no table whose keys are neither 1 to n nor texts";
            return Err(("json", problem.to_owned()));
        }
        Payload::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in entries.iter() {
                map.insert(key.to_string(), to_json(value)?);
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

//! Time, files, JSON: what a script sees of the world.

use std::sync::Arc;

use mlua::{IntoLua, IntoLuaMulti, Lua, LuaString, MultiValue, Table, Value};
use windlass_value::Payload;

use super::{ask, ask_process, function, random, text_of, tried, without_prelude};
use crate::interpreter::InterpreterShared;
use crate::script::Script;
use crate::value::Buffer;
use crate::{compile_cost, date, json};

pub(super) fn add_world(
    lua: &Lua,
    native: &Table,
    inner: &Arc<InterpreterShared>,
    script: &Arc<Script>,
) -> mlua::Result<()> {
    native.set(
        "clock",
        lua.create_function(|_, ()| {
            // Processor time depends on the moment: it is an answer like any other.
            let used =
                ask(|budget| budget.ask(|_| Payload::Float(budget.cpu_time().as_secs_f64())));
            Ok(used.as_f64().unwrap_or_default())
        })?,
    )?;
    native.set("random", lua.create_function(|_, ()| Ok(random()))?)?;
    native.set("null", Value::NULL)?;
    native.set(
        "time",
        function(lua, |_, args| date::time(args.front(), date::wall))?,
    )?;
    native.set(
        "date",
        lua.create_function(|lua, args: MultiValue| {
            tried(lua, date::date(lua, args.front(), args.get(1), date::wall))
        })?,
    )?;
    let allowed = inner.sandbox.allows_env();
    native.set(
        "getenv",
        function(lua, move |_, args| {
            let name = text_of(args.front(), "the name of a variable")?;
            if !allowed {
                let problem =
                    "the sandbox does not allow the environment: allow it with --allow-env";
                return Err(("sandbox", problem.to_owned()));
            }
            Ok(ask_process(|_| {
                std::env::var(&name).map_or(Payload::Nil, Payload::from)
            }))
        })?,
    )?;
    let from = script.clone();
    native.set(
        "module",
        lua.create_function(move |lua, name: Value| {
            let found = text_of(Some(&name), "the name of a module").and_then(|name| {
                let root = from.root.as_ref().ok_or_else(|| {
                    (
                        "require",
                        "this script is no file, so it has no modules".to_owned(),
                    )
                })?;
                let module = Script::module(root, &name)
                    .map_err(|problem| ("require", problem.to_string()))?;
                compile_cost::check_script(module.code())
                    .map_err(|problem| ("require", format!("{}: {problem}", module.name)))?;
                Ok(module)
            });
            match found {
                Ok(module) => (true, module.code(), module.chunk_name()).into_lua_multi(lua),
                Err((kind, message)) => (false, kind, message).into_lua_multi(lua),
            }
        })?,
    )?;
    native.set(
        "json_encode",
        function(lua, |lua, args| json::encode(lua, args.front()))?,
    )?;
    native.set(
        "too_costly",
        lua.create_function(|_, text: LuaString| {
            Ok(compile_cost::check_loaded(&text.as_bytes()).err())
        })?,
    )?;
    native.set(
        "json_decode",
        lua.create_function(|lua, text: Value| {
            let decoded = text_of(Some(&text), "JSON").and_then(|text| json::decode(lua, &text));
            tried(lua, decoded)
        })?,
    )?;
    native.set(
        "buffer",
        lua.create_function(|lua, text: Value| match &text {
            Value::String(text) => {
                let buffer = Buffer((&*text.as_bytes()).into()).into_lua(lua)?;
                (true, buffer).into_lua_multi(lua)
            }
            other => {
                let problem = format!("a buffer is made of a text, not of a {}", other.type_name());
                (false, "argument", problem).into_lua_multi(lua)
            }
        })?,
    )?;
    native.set(
        "without_prelude",
        lua.create_function(|_, text: LuaString| Ok(without_prelude(&text.to_string_lossy())))?,
    )
}

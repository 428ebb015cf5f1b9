//! The functions of the host that scripts call and that answer at once.
//!
//! Those that can fail answer `true` and their values, or `false`, a kind and a message: the
//! prelude raises that with the place in the script. Whatever a script does not compute itself goes
//! through [`Budget::ask`], so that a replay has the same answers.

mod bonds;
mod names;
mod output;
mod processes;
mod send;
mod spawn;
mod tasks;
mod world;

use std::sync::Arc;
use std::time::Duration;

use mlua::{Function, IntoLuaMulti, Lua, LuaString, MultiValue, Table, Value};
use windlass_actor::ProcessContext;
use windlass_core::sync::clock;
use windlass_value::Payload;
use windlass_vm::Budget;

use crate::interpreter::InterpreterShared;
use crate::op::{Op, Refusal};
use crate::preempt::{is_thrown, with_budget};
use crate::script::Script;
use crate::state::{Pending, PreludePart};
use crate::value::{LuaPid, to_lua};

pub(crate) use self::processes::ProcessHandle;
pub(crate) use self::spawn::wanted;

/// What functions give that can fail.
type Answer = Result<Payload, Refusal>;

/// Asks with the budget of the guest that runs; nil if none does.
fn ask(question: impl FnOnce(&Budget<'_>) -> Payload) -> Payload {
    with_budget(|budget| budget.map_or(Payload::Nil, question))
}

/// Another task of this process is ready: who runs now has a slice only.
fn share() {
    with_budget(|budget| {
        if let Some(budget) = budget {
            budget.share();
        }
    });
}

/// Asks something of the guest's process.
fn ask_process(question: impl FnOnce(&ProcessContext) -> Payload) -> Payload {
    ask(|budget| budget.ask(question))
}

/// A random number, which is the same in a replay.
pub(crate) fn random() -> i64 {
    with_budget(|budget| budget.map_or(0, Budget::random)) as i64
}

/// `true` and a value, or `false` and why.
fn answered(lua: &Lua, answer: Answer) -> mlua::Result<MultiValue> {
    match answer {
        Ok(payload) => (true, to_lua(lua, &payload)?).into_lua_multi(lua),
        Err((kind, message)) => (false, kind, message).into_lua_multi(lua),
    }
}

/// The same, with a value of Lua.
pub(crate) fn tried(lua: &Lua, answer: Result<Value, Refusal>) -> mlua::Result<MultiValue> {
    match answer {
        Ok(value) => (true, value).into_lua_multi(lua),
        Err((kind, message)) => (false, kind, message).into_lua_multi(lua),
    }
}

/// Makes a function of something that can fail.
fn function<F>(lua: &Lua, call: F) -> mlua::Result<Function>
where
    F: Fn(&Lua, MultiValue) -> Answer + Send + 'static,
{
    lua.create_function(move |lua, args: MultiValue| answered(lua, call(lua, args)))
}

fn text_of(value: Option<&Value>, what: &str) -> Result<String, Refusal> {
    match value {
        Some(Value::String(text)) => Ok(text.to_string_lossy()),
        other => {
            let found = other.map_or("nothing", Value::type_name);
            Err(("argument", format!("{what} must be a text, not {found}")))
        }
    }
}

pub(crate) fn library(
    lua: &Lua,
    inner: &Arc<InterpreterShared>,
    script: &Arc<Script>,
    pending: &Arc<Pending>,
    tasks: Option<usize>,
) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    tasks::add_tasks(lua, &native, pending, tasks)?;
    add_first(lua, &native)?;
    // The others come with the first of them that is looked for: a process that only waits does
    // without.
    let (inner, script, pending) = (inner.clone(), script.clone(), pending.clone());
    let others = lua.create_function(move |lua, (native, name): (Table, Value)| {
        processes::add_processes(lua, &native, &inner, &script, &pending)?;
        bonds::add_bonds(lua, &native, &pending)?;
        names::add_names(lua, &native)?;
        output::add_output(lua, &native, &inner)?;
        world::add_world(lua, &native, &inner, &script)?;
        native.set("patterns", crate::pattern::library(lua)?)?;
        native.set("is_thrown", lua.create_function(|_, ()| Ok(is_thrown()))?)?;
        // Only now: where the memory was not enough, it is tried again.
        native.set_metatable(None)?;
        native.raw_get::<Value>(name)
    })?;
    let meta = lua.create_table()?;
    meta.set("__index", others)?;
    native.set_metatable(Some(meta))?;
    Ok(native)
}

/// What every state needs, or the prelude looks at when it begins.
fn add_first(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set(
        "self",
        lua.create_function(|_, ()| {
            let pid = with_budget(|budget| budget.map(Budget::pid));
            Ok(pid.map(LuaPid))
        })?,
    )?;
    native.set(
        "send",
        lua.create_function(|lua, (to, topic, payload): (Value, Value, Value)| {
            Ok(send::send(lua, &to, topic, &payload))
        })?,
    )?;
    native.set(
        "now",
        lua.create_function(|_, ()| {
            let now = with_budget(|budget| budget.map_or_else(clock::now, Budget::now));
            Ok(Duration::from_nanos(now).as_secs_f64())
        })?,
    )?;
    native.set(
        "part",
        lua.create_function(|lua, name: LuaString| {
            let part = PreludePart::named(&name.as_bytes());
            let part = part.ok_or_else(|| mlua::Error::runtime("the prelude has no such part"))?;
            Ok((part.load(lua)?, Op::table(lua)?))
        })?,
    )
}

/// A traceback as a user wants it: without the lines that are ours.
pub(crate) fn without_prelude(text: &str) -> String {
    let ours = |line: &&str| {
        ["\twindlass:", "\t?: in ", "\t[C]: in function 'xpcall'"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let mut lines: Vec<&str> = text.lines().filter(|line| !ours(line)).collect();
    if lines
        .last()
        .is_some_and(|line| line.trim() == "(...tail calls...)")
    {
        lines.pop();
    }
    lines.join("\n")
}

//! Starting a process: what a script says about it.

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};
use windlass_value::Payload;
use windlass_vm::{Limits, SpawnOptions, Task};

use super::text_of;
use crate::guest::LuaGuest;
use crate::interpreter::InterpreterShared;
use crate::op::{Refusal, duration};
use crate::preempt::with_budget;
use crate::script::Script;
use crate::state::Pending;
use crate::value::to_payload;

/// What a script says about a process that it starts.
pub(crate) struct ScriptSpawn {
    pub(crate) script: Arc<Script>,
    pub(crate) args: Vec<Payload>,
    pub(crate) limits: Option<Limits>,
}

/// `{script =, args =, memory =, cpu =, tasks =}`, or the name of a script.
pub(crate) fn wanted(
    lua: &Lua,
    inner: &InterpreterShared,
    from: &Script,
    value: &Value,
) -> Result<ScriptSpawn, Refusal> {
    let table = value.as_table();
    let name = match table {
        Some(table) => text_of(table.get::<Value>("script").ok().as_ref(), "the script")?,
        None => text_of(Some(value), "the script")?,
    };
    let root = from.root.as_ref().ok_or_else(|| {
        let problem = "this script is no file, so it has no folder with others";
        ("script", problem.to_owned())
    })?;
    let script = inner
        .script(root, &name)
        .map_err(|problem| ("script", problem.to_string()))?;
    let mut given = Vec::new();
    let mut limits = None;
    if let Some(table) = table {
        if let Ok(Some(args)) = table.get::<Option<Table>>("args") {
            for value in args.sequence_values::<Value>().flatten() {
                let arg = to_payload(lua, &value);
                given.push(arg.map_err(|problem| ("argument", problem.to_string()))?);
            }
        }
        limits = limits_of(table)?;
    }
    Ok(ScriptSpawn {
        script,
        args: given,
        limits,
    })
}

fn limits_of(table: &Table) -> Result<Option<Limits>, Refusal> {
    let number = |key: &'static str| match table.get::<Value>(key) {
        Ok(Value::Nil) | Err(_) => Ok(None),
        Ok(Value::Integer(number)) if number > 0 => Ok(Some(number as f64)),
        Ok(Value::Number(number)) if number > 0.0 => Ok(Some(number)),
        Ok(_) => Err(("argument", format!("{key} must be a number above 0"))),
    };
    let (memory, cpu, tasks) = (number("memory")?, number("cpu")?, number("tasks")?);
    if memory.is_none() && cpu.is_none() && tasks.is_none() {
        return Ok(None);
    }
    let mut limits = Limits::NONE;
    limits.memory = memory.map(|bytes| bytes as usize);
    limits.cpu = cpu.and_then(duration);
    limits.tasks = tasks.map(|tasks| tasks as usize);
    Ok(Some(limits))
}

/// What `process.spawn` takes in a table.
const SPAWN_FIELDS: [&str; 8] = [
    "script", "args", "name", "link", "monitor", "memory", "cpu", "tasks",
];

/// A limit whose name is misspelt would be no limit.
fn check_spawn_fields(table: &Table) -> Result<(), Refusal> {
    for (key, _) in table.pairs::<Value, Value>().flatten() {
        let name = key.to_string().unwrap_or_default();
        if !SPAWN_FIELDS.contains(&&*name) {
            let known = SPAWN_FIELDS.join(", ");
            let problem = format!("process.spawn has no field '{name}'; there are: {known}");
            return Err(("argument", problem));
        }
    }
    Ok(())
}

pub(super) fn spawn_process(
    lua: &Lua,
    inner: &Arc<InterpreterShared>,
    from: &Script,
    pending: &Pending,
    mut args: MultiValue,
) -> Result<Task, Refusal> {
    let first = args.pop_front().unwrap_or(Value::Nil);
    first.as_table().map_or(Ok(()), check_spawn_fields)?;
    let mut wanted = wanted(lua, inner, from, &first)?;
    for value in args {
        let arg = to_payload(lua, &value);
        wanted
            .args
            .push(arg.map_err(|problem| ("argument", problem.to_string()))?);
    }
    let mut options = SpawnOptions::new();
    if let Some(table) = first.as_table() {
        let flag = |key: &str| table.get::<bool>(key).unwrap_or(false);
        if let Ok(Some(name)) = table.get::<Option<String>>("name") {
            options = options.name(name);
        }
        if flag("link") {
            options = options.linked();
        }
        if flag("monitor") {
            options = options.monitored();
            pending.with(|state| state.wants_exits = true);
        }
    }
    if let Some(limits) = wanted.limits {
        options = options.limits(limits);
    }
    let guest = LuaGuest::new(inner.clone(), wanted.script, wanted.args);
    with_budget(|budget| match budget {
        Some(budget) => budget
            .spawn_with(guest, options)
            .map_err(|problem| ("spawn", problem.to_string())),
        None => Err((
            "spawn",
            "there is no process here that could start others".to_owned(),
        )),
    })
}

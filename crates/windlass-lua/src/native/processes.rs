//! Other processes: handles, and what is done to them.

use std::sync::Arc;

use mlua::{
    IntoLuaMulti, Lua, MetaMethod, MultiValue, Table, UserData, UserDataFields, UserDataMethods,
    Value,
};
use windlass_actor::Pid;
use windlass_value::Payload;
use windlass_vm::Task;

use super::send::{Recipient, recipient};
use super::spawn::spawn_process;
use super::{ask, ask_process, function, text_of};
use crate::interpreter::InterpreterShared;
use crate::op::Refusal;
use crate::script::Script;
use crate::state::Pending;
use crate::supervise;
use crate::value::LuaPid;

/// A process that this one has started.
pub(crate) struct ProcessHandle(pub(crate) Task);

impl UserData for ProcessHandle {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("pid", |_, handle| Ok(LuaPid(handle.0.pid())));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, handle, ()| {
            Ok(format!("process {}", handle.0.pid()))
        });
        methods.add_method("cancel", |_, handle, reason: Option<String>| {
            let reason = reason.unwrap_or_else(|| "cancelled".to_owned());
            ask(|budget| {
                budget.cancel(&handle.0, reason);
                Payload::Nil
            });
            Ok(())
        });
        methods.add_method("kill", |_, handle, ()| {
            ask(|budget| {
                budget.ask(|_| {
                    handle.0.kill();
                    Payload::Nil
                })
            });
            Ok(())
        });
    }
}

pub(super) fn add_processes(
    lua: &Lua,
    native: &Table,
    inner: &Arc<InterpreterShared>,
    script: &Arc<Script>,
    pending: &Arc<Pending>,
) -> mlua::Result<()> {
    let (of, from, pending) = (inner.clone(), script.clone(), pending.clone());
    native.set(
        "spawn_process",
        lua.create_function(move |lua, args: MultiValue| {
            match spawn_process(lua, &of, &from, &pending, args) {
                Ok(task) => (true, ProcessHandle(task)).into_lua_multi(lua),
                Err((kind, message)) => (false, kind, message).into_lua_multi(lua),
            }
        })?,
    )?;
    let (of, from) = (inner.clone(), script.clone());
    native.set(
        "start_supervisor",
        function(lua, move |lua, args| {
            supervise::start(lua, &of, &from, args.front())
        })?,
    )?;
    native.set(
        "cancel",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            let reason = match args.get(1) {
                Some(Value::String(reason)) => reason.to_string_lossy(),
                _ => "cancelled".to_owned(),
            };
            Ok(ask_process(|process| {
                process.host().cancel(pid, reason);
                Payload::Nil
            }))
        })?,
    )?;
    native.set(
        "kill",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            Ok(ask_process(|process| {
                process.host().kill(pid);
                Payload::Nil
            }))
        })?,
    )?;
    native.set(
        "alive",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            Ok(ask_process(|process| process.host().is_alive(pid).into()))
        })?,
    )?;
    native.set(
        "to_pid",
        function(lua, |_, args| {
            let text = text_of(args.front(), "a PID")?;
            let pid = text.parse::<Pid>();
            pid.map(Payload::Pid)
                .map_err(|problem| ("argument", problem.to_string()))
        })?,
    )
}

/// The process that a value names; an error if no process has the name.
pub(super) fn found(value: Option<&Value>) -> Result<Pid, Refusal> {
    match recipient(value.unwrap_or(&Value::Nil))? {
        Recipient::Pid(pid) => Ok(pid),
        Recipient::Name(name) => {
            let found = ask_process(|process| {
                process
                    .host()
                    .whereis(&name)
                    .map_or(Payload::Nil, Payload::Pid)
            });
            found
                .as_pid()
                .ok_or_else(|| ("no_process", format!("nobody is registered as {name:?}")))
        }
    }
}

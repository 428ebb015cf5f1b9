//! Names and groups.

use mlua::{Lua, Table, Value};
use windlass_actor::{Message, RegisterError, Topic};
use windlass_value::Payload;

use super::{Answer, ask_process, function, text_of};
use crate::op::pid_of;
use crate::value::to_payload;

pub(super) fn add_names(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set(
        "register",
        function(lua, |_, args| {
            let name = text_of(args.front(), "a name")?;
            let other = args.get(1).map(pid_of).transpose()?;
            registered(ask_process(|process| {
                let pid = other.unwrap_or(process.pid());
                said(process.host().register(name, pid))
            }))
        })?,
    )?;
    native.set(
        "unregister",
        function(lua, |_, args| {
            let name = text_of(args.front(), "a name")?;
            Ok(ask_process(|process| {
                process.host().unregister(&name).is_some().into()
            }))
        })?,
    )?;
    native.set(
        "whereis",
        function(lua, |_, args| {
            let name = text_of(args.front(), "a name")?;
            Ok(ask_process(|process| {
                process
                    .host()
                    .whereis(&name)
                    .map_or(Payload::Nil, Payload::Pid)
            }))
        })?,
    )?;
    native.set(
        "join",
        function(lua, |_, args| {
            let group = text_of(args.front(), "a group")?;
            registered(ask_process(|process| {
                said(process.host().join(group, process.pid()))
            }))
        })?,
    )?;
    native.set(
        "leave",
        function(lua, |_, args| {
            let group = text_of(args.front(), "a group")?;
            Ok(ask_process(|process| {
                process.host().leave(&group, process.pid()).into()
            }))
        })?,
    )?;
    native.set(
        "members",
        function(lua, |_, args| {
            let group = text_of(args.front(), "a group")?;
            Ok(ask_process(|process| {
                let members = process.host().members(&group);
                Payload::from(members.into_iter().map(Payload::Pid).collect::<Vec<_>>())
            }))
        })?,
    )?;
    native.set(
        "broadcast",
        function(lua, |lua, args| {
            let group = text_of(args.front(), "a group")?;
            let topic = text_of(args.get(1), "a topic")?;
            let payload = to_payload(lua, args.get(2).unwrap_or(&Value::Nil));
            let payload = payload.map_err(|problem| ("argument", problem.to_string()))?;
            Ok(ask_process(|process| {
                let message = Message::new(Topic::from(topic), payload).from(process.pid());
                Payload::Int(process.host().broadcast(&group, &message) as i64)
            }))
        })?,
    )
}

/// What came of a registration, as something that can be written down: nil, or why not.
fn said(result: Result<(), RegisterError>) -> Payload {
    match result {
        Ok(()) => Payload::Nil,
        Err(problem) => problem.to_string().into(),
    }
}

fn registered(said: Payload) -> Answer {
    match said {
        Payload::Text(problem) => Err(("register", problem.to_string())),
        _ => Ok(Payload::Bool(true)),
    }
}

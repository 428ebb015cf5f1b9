//! Links and monitors.

use std::sync::Arc;

use mlua::{Lua, Table, Value};
use windlass_actor::MonitorRef;
use windlass_value::Payload;

use super::processes::found;
use super::{ask_process, function};
use crate::state::Pending;

pub(super) fn add_bonds(lua: &Lua, native: &Table, pending: &Arc<Pending>) -> mlua::Result<()> {
    native.set(
        "link",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            Ok(ask_process(|process| {
                process.link(pid);
                Payload::Nil
            }))
        })?,
    )?;
    native.set(
        "unlink",
        function(lua, |_, args| {
            let pid = found(args.front())?;
            Ok(ask_process(|process| {
                process.unlink(pid);
                Payload::Nil
            }))
        })?,
    )?;
    let wants = pending.clone();
    native.set(
        "trap_links",
        function(lua, move |_, args| {
            let traps = args
                .front()
                .is_none_or(|value| value.as_boolean() != Some(false));
            wants.with(|state| state.wants_exits = true);
            Ok(ask_process(|process| {
                process.trap_links(traps);
                Payload::Nil
            }))
        })?,
    )?;
    let wants = pending.clone();
    native.set(
        "monitor",
        function(lua, move |_, args| {
            let pid = found(args.front())?;
            wants.with(|state| state.wants_exits = true);
            Ok(ask_process(|process| {
                Payload::Int(process.monitor(pid).number() as i64)
            }))
        })?,
    )?;
    native.set(
        "demonitor",
        function(lua, |_, args| {
            let number = args.front().and_then(Value::as_integer);
            let number = number.ok_or(("argument", "a monitor is a number".to_owned()))?;
            Ok(ask_process(|process| {
                process.demonitor(MonitorRef::from_number(number as u64));
                Payload::Nil
            }))
        })?,
    )
}

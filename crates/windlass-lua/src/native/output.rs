//! What scripts print and log.

use std::sync::Arc;

use mlua::{Lua, LuaString, Table};
use windlass_vm::Budget;

use super::without_prelude;
use crate::interpreter::{Inner, Level, Printed};
use crate::preempt::with_budget;

pub(super) fn add_output(lua: &Lua, native: &Table, inner: &Arc<Inner>) -> mlua::Result<()> {
    let own = || with_budget(|budget| budget.map(Budget::pid));
    let to = inner.clone();
    native.set(
        "print",
        lua.create_function(move |_, text: LuaString| {
            let text = &text.to_string_lossy();
            let (pid, level) = (own(), None);
            to.print(Printed { pid, level, text });
            Ok(())
        })?,
    )?;
    let to = inner.clone();
    native.set(
        "log",
        lua.create_function(move |_, (level, text): (LuaString, LuaString)| {
            let level = match &*level.as_bytes() {
                b"debug" => Level::Debug,
                b"warn" => Level::Warn,
                b"error" => Level::Error,
                _ => Level::Info,
            };
            let text = &text.to_string_lossy();
            let (pid, level) = (own(), Some(level));
            to.print(Printed { pid, level, text });
            Ok(())
        })?,
    )?;
    let to = inner.clone();
    native.set(
        "uncaught",
        lua.create_function(move |_, (task, text): (u64, LuaString)| {
            let text = without_prelude(&text.to_string_lossy());
            let text = &format!("task {task} failed and nobody awaited it: {text}");
            let (pid, level) = (own(), Some(Level::Error));
            to.print(Printed { pid, level, text });
            Ok(())
        })?,
    )
}

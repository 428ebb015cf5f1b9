//! What scripts print and log.

use std::sync::Arc;

use mlua::{Lua, LuaString, Table};

use super::without_prelude;
use crate::interpreter::{InterpreterShared, Level, Printed};
use crate::preempt::with_budget;

pub(super) fn add_output(
    lua: &Lua,
    native: &Table,
    inner: &Arc<InterpreterShared>,
) -> mlua::Result<()> {
    let to = inner.clone();
    native.set(
        "print",
        lua.create_function(move |_, text: LuaString| {
            print(&to, None, &text.to_string_lossy());
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
            print(&to, Some(level), &text.to_string_lossy());
            Ok(())
        })?,
    )?;
    let to = inner.clone();
    native.set(
        "uncaught",
        lua.create_function(move |_, (task, text): (u64, LuaString)| {
            let text = without_prelude(&text.to_string_lossy());
            let text = format!("task {task} failed and nobody awaited it: {text}");
            print(&to, Some(Level::Error), &text);
            Ok(())
        })?,
    )
}

/// Gives a text to the output of the interpreter, with the PID of the process that runs here.
fn print(inner: &InterpreterShared, level: Option<Level>, text: &str) {
    let pid = with_budget(|budget| {
        let budget = budget?;
        budget.note(|| format!("printed {text}"));
        Some(budget.pid())
    });
    inner.print(Printed { pid, level, text });
}

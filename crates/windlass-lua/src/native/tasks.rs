//! The tasks of one state.

use std::sync::Arc;

use mlua::{Function, IntoLuaMulti, Lua, Table, Value};

use super::share;
use crate::state::Pending;

pub(super) fn add_tasks(
    lua: &Lua,
    native: &Table,
    pending: &Arc<Pending>,
    most: Option<usize>,
) -> mlua::Result<()> {
    let (born, woken, stopped) = (pending.clone(), pending.clone(), pending.clone());
    native.set(
        "launch",
        lua.create_function(move |lua, body: Function| {
            let thread = lua.create_thread(body)?;
            match born.bear(thread.clone(), most) {
                Some(id) => {
                    share();
                    (id, thread).into_lua_multi(lua)
                }
                None => {
                    let problem = format!(
                        "the process has {} tasks already, which is its limit",
                        most.unwrap_or_default()
                    );
                    (Value::Nil, problem).into_lua_multi(lua)
                }
            }
        })?,
    )?;
    native.set(
        "wake",
        lua.create_function(move |_, task: u64| {
            woken.wake(task);
            share();
            Ok(())
        })?,
    )?;
    native.set(
        "cancel_task",
        lua.create_function(move |_, (task, reason): (u64, String)| {
            stopped.with(|state| state.cancelled.push((task, reason.into())));
            Ok(())
        })?,
    )
}

//! Patterns.
pub(crate) fn library(lua: &mlua::Lua) -> mlua::Result<mlua::Table> { lua.create_table() }

//! What the functions are given: the checks and conversions of Lua's own, with its words.

use std::mem;

use mlua::{Lua, LuaString, MultiValue, Value};

use super::steps::PatternProblem;

/// The reasons that a function of patterns returns no result.
#[derive(Debug)]
pub(super) enum PatternError {
    /// What the script did wrong.
    PatternProblem(PatternProblem),
    /// What Lua says: that there is no memory left.
    Lua(mlua::Error),
}

impl From<PatternProblem> for PatternError {
    fn from(complaint: PatternProblem) -> PatternError {
        PatternError::PatternProblem(complaint)
    }
}

impl From<mlua::Error> for PatternError {
    fn from(error: mlua::Error) -> PatternError {
        PatternError::Lua(error)
    }
}

/// The arguments of a function, which are counted from 1.
pub(super) struct Arguments<'a> {
    pub(super) lua: &'a Lua,
    pub(super) function: &'static str,
    pub(super) values: MultiValue,
}

impl Arguments<'_> {
    pub(super) fn get(&self, number: usize) -> Option<&Value> {
        self.values.get(number - 1)
    }

    /// Takes a text, or a number as one. Takes, because references into Lua cost more than short
    /// matches do.
    pub(super) fn take_text(&mut self, number: usize) -> Result<LuaString, PatternError> {
        let value = self.values.get_mut(number - 1);
        let text = match value {
            Some(value @ (Value::String(_) | Value::Integer(_) | Value::Number(_))) => {
                self.lua.coerce_string(mem::take(value))?
            }
            _ => None,
        };
        text.ok_or_else(|| self.wrong_type(number, "string"))
    }

    /// A whole number, or a text that says one.
    pub(super) fn integer(&self, number: usize, default: i64) -> Result<i64, PatternError> {
        let value = match self.get(number) {
            None | Some(Value::Nil) => return Ok(default),
            Some(Value::Integer(integer)) => return Ok(*integer),
            Some(value) => value,
        };
        if let Some(integer) = self.lua.coerce_integer(value.clone())? {
            return Ok(integer);
        }
        match self.lua.coerce_number(value.clone())? {
            Some(_) => Err(self.wrong(number, "number has no integer representation")),
            None => Err(self.wrong_type(number, "number")),
        }
    }

    pub(super) fn truth(&self, number: usize) -> bool {
        !matches!(
            self.get(number),
            None | Some(Value::Nil | Value::Boolean(false))
        )
    }

    /// Where to begin in a text, counted from 0; None if that is behind its end.
    pub(super) fn start(
        &self,
        number: usize,
        length: usize,
    ) -> Result<Option<usize>, PatternError> {
        let wanted = self.integer(number, 1)?;
        let from_end = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
        let start = match wanted {
            ..0 => length.saturating_sub(from_end),
            0 => 0,
            1.. => from_end - 1,
        };
        Ok((start <= length).then_some(start))
    }

    pub(super) fn wrong_type(&self, number: usize, expected: &str) -> PatternError {
        let got = match self.get(number) {
            Some(value) => shown_type(value),
            None => "no value".to_owned(),
        };
        self.wrong(number, &format!("{expected} expected, got {got}"))
    }

    fn wrong(&self, number: usize, problem: &str) -> PatternError {
        let function = self.function;
        PatternProblem::from(format!(
            "bad argument #{number} to '{function}' ({problem})"
        ))
        .into()
    }
}

/// The type of a value, or the name that its metatable gives it.
fn shown_type(value: &Value) -> String {
    let name = match value {
        Value::LightUserData(_) => return "light userdata".to_owned(),
        Value::Table(table) => table
            .metatable()
            .and_then(|metatable| metatable.raw_get::<Value>("__name").ok()),
        Value::UserData(data) => data.type_name().ok().map(Value::String),
        _ => None,
    };
    match name {
        Some(Value::String(name)) => name.to_string_lossy(),
        _ => type_name(value).to_owned(),
    }
}

/// The type of a value as scripts know it.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

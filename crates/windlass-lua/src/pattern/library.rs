//! The functions that scripts call.
//!
//! They answer `true` and their results, or `false`, `"pattern"` and a message, which the prelude
//! raises with the place in the script.

use mlua::{Function, IntoLuaMulti, Lua, LuaString, MultiValue, Table, Value};

use super::arguments::{Arguments, PatternError};
use super::bytes::find_text;
use super::matcher::{CaptureValue, Match, Matcher, is_plain};
use super::steps::Steps;
use super::substitute;

/// What the loops are called in tracebacks, where lines that begin so are left out. Not the name of
/// the prelude: unlike that they may be preempted.
const DRIVE_NAME: &str = "=windlass:pattern";
const DRIVE: &str = include_str!("drive.lua");

/// A table with `find`, `match`, `gmatch` and `gsub`.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    native.set("find", function(lua, "find", find)?)?;
    native.set("match", function(lua, "match", first_match)?)?;
    native.set("begin", function(lua, "gmatch", begin)?)?;
    native.set("following", lua.create_function(following)?)?;
    native.set("substitute", function(lua, "gsub", substitute::substitute)?)?;
    native.set("advance", lua.create_function(substitute::advance)?)?;
    let drive = lua.load(DRIVE).set_name(DRIVE_NAME);
    drive.into_function()?.call(native)
}

/// Makes a function that answers.
fn function<F>(lua: &Lua, name: &'static str, call: F) -> mlua::Result<Function>
where
    F: Fn(&mut Arguments<'_>) -> Result<MultiValue, PatternError> + Send + 'static,
{
    lua.create_function(move |lua, values: MultiValue| {
        let mut arguments = Arguments {
            lua,
            function: name,
            values,
        };
        answered(lua, call(&mut arguments))
    })
}

/// The results of a call, or why there are none.
pub(super) fn answered(
    lua: &Lua,
    answer: Result<MultiValue, PatternError>,
) -> mlua::Result<MultiValue> {
    match answer {
        Ok(values) => Ok(values),
        Err(PatternError::PatternProblem(complaint)) => {
            (false, "pattern", &*complaint.0).into_lua_multi(lua)
        }
        Err(PatternError::Lua(error)) => Err(error),
    }
}

fn find(arguments: &mut Arguments<'_>) -> Result<MultiValue, PatternError> {
    let (subject, pattern) = (arguments.take_text(1)?, arguments.take_text(2)?);
    let (subject, pattern) = (&*subject.as_bytes(), &*pattern.as_bytes());
    let Some(start) = arguments.start(3, subject.len())? else {
        return nothing(arguments.lua);
    };
    if arguments.truth(4) || is_plain(pattern) {
        return match find_text(subject, pattern, start) {
            Some(at) => Ok((true, at + 1, at + pattern.len()).into_lua_multi(arguments.lua)?),
            None => nothing(arguments.lua),
        };
    }
    let mut matcher = Matcher::new(subject, pattern, Steps::new(subject, pattern));
    let Some(found) = matcher.search(start, None)? else {
        return nothing(arguments.lua);
    };
    let mut values = (true, found.start + 1, found.end).into_lua_multi(arguments.lua)?;
    for index in 0..matcher.captures() {
        values.push_back(value_of(arguments.lua, matcher.capture(index)?)?);
    }
    Ok(values)
}

fn first_match(arguments: &mut Arguments<'_>) -> Result<MultiValue, PatternError> {
    let (subject, pattern) = (arguments.take_text(1)?, arguments.take_text(2)?);
    let (subject, pattern) = (&*subject.as_bytes(), &*pattern.as_bytes());
    let Some(start) = arguments.start(3, subject.len())? else {
        return nothing(arguments.lua);
    };
    let mut matcher = Matcher::new(subject, pattern, Steps::new(subject, pattern));
    match matcher.search(start, None)? {
        Some(found) => with_captures(
            arguments.lua,
            Value::Boolean(true),
            &matcher,
            found,
            usize::MAX,
        ),
        None => nothing(arguments.lua),
    }
}

/// What `gmatch` checks when it is called: gives the texts, and where to begin.
fn begin(arguments: &mut Arguments<'_>) -> Result<MultiValue, PatternError> {
    let (subject, pattern) = (arguments.take_text(1)?, arguments.take_text(2)?);
    let length = subject.as_bytes().len();
    // Behind the end nothing matches, not even nothing.
    let start = arguments.start(3, length)?.unwrap_or(length + 1);
    Ok((true, subject, pattern, start).into_lua_multi(arguments.lua)?)
}

/// A turn of `gmatch`: where the next match ends, and its captures; nothing if there is none.
fn following(
    lua: &Lua,
    (subject, pattern, start, before): (LuaString, LuaString, usize, Option<usize>),
) -> mlua::Result<MultiValue> {
    let (subject, pattern) = (&*subject.as_bytes(), &*pattern.as_bytes());
    let mut matcher = Matcher::unanchored(subject, pattern, Steps::new(subject, pattern));
    let mut next = || match matcher.search(start, before)? {
        Some(found) => with_captures(
            lua,
            Value::Integer(found.end as i64),
            &matcher,
            found,
            usize::MAX,
        ),
        None => Ok(MultiValue::new()),
    };
    next().map_err(|error| match error {
        PatternError::PatternProblem(complaint) => mlua::Error::runtime(complaint.0),
        PatternError::Lua(error) => error,
    })
}

fn nothing(lua: &Lua) -> Result<MultiValue, PatternError> {
    Ok((true, Value::Nil).into_lua_multi(lua)?)
}

/// A value, and the first captures of a match; the match itself if it has none.
pub(super) fn with_captures(
    lua: &Lua,
    first: Value,
    matcher: &Matcher<'_>,
    found: Match,
    most: usize,
) -> Result<MultiValue, PatternError> {
    let count = matcher.captures().min(most);
    let mut values = MultiValue::with_capacity(1 + count.max(1));
    values.push_back(first);
    if count == 0 {
        values.push_back(value_of(lua, CaptureValue::Text(matcher.text(found)))?);
    }
    for index in 0..count {
        values.push_back(value_of(lua, matcher.capture(index)?)?);
    }
    Ok(values)
}

fn value_of(lua: &Lua, captured: CaptureValue<'_>) -> mlua::Result<Value> {
    match captured {
        CaptureValue::Text(text) => Ok(Value::String(lua.create_string(text)?)),
        CaptureValue::Position(place) => Ok(Value::Integer(place as i64)),
    }
}

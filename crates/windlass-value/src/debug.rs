//! How payloads are shown to people who debug.

use std::collections::btree_map;
use std::fmt;
use std::slice;
use std::sync::Arc;

use crate::payload::Payload;

/// How many values a payload is shown with: parts that are in several places would be shown in each
/// of them.
const SHOWN: usize = 1000;

impl fmt::Debug for Payload {
    /// Shows the first thousand values that are in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The lists and maps that are being shown, not on the stack: it may be a small one.
        let mut levels = Vec::new();
        show(self, f, &mut levels)?;
        for _ in 1..SHOWN {
            let Some(value) = next_shown(f, &mut levels)? else {
                return Ok(());
            };
            show(value, f, &mut levels)?;
        }
        if next_shown(f, &mut levels)?.is_some() {
            f.write_str("...")?;
        }
        while let Some(level) = levels.pop() {
            f.write_str(level.end())?;
        }
        Ok(())
    }
}

/// A list or map that is being shown.
struct OpenContainer<'a> {
    left: Unshown<'a>,
    is_first: bool,
}

/// What is not shown yet of a list or map.
enum Unshown<'a> {
    List(slice::Iter<'a, Payload>),
    Map(btree_map::Iter<'a, Arc<str>, Payload>),
}

impl<'a> OpenContainer<'a> {
    fn new(left: Unshown<'a>) -> OpenContainer<'a> {
        let is_first = true;
        OpenContainer { left, is_first }
    }

    fn end(&self) -> &'static str {
        match self.left {
            Unshown::List(_) => "]",
            Unshown::Map(_) => "}",
        }
    }
}

/// Shows a value; of a list or map the beginning.
fn show<'a>(
    payload: &'a Payload,
    f: &mut fmt::Formatter<'_>,
    levels: &mut Vec<OpenContainer<'a>>,
) -> fmt::Result {
    match payload {
        Payload::Nil => f.write_str("nil"),
        Payload::Bool(value) => write!(f, "{value}"),
        Payload::Int(value) => write!(f, "{value}"),
        Payload::Float(value) => write!(f, "{value:?}"),
        Payload::Text(value) => write!(f, "{value:?}"),
        Payload::Bytes(value) => write!(f, "{} bytes", value.len()),
        Payload::List(values) => {
            levels.push(OpenContainer::new(Unshown::List(values.iter())));
            f.write_str("[")
        }
        Payload::Map(entries) => {
            levels.push(OpenContainer::new(Unshown::Map(entries.iter())));
            f.write_str("{")
        }
        Payload::Pid(pid) => write!(f, "{pid}"),
        Payload::Opaque(value) => write!(f, "{value:?}"),
    }
}

/// Ends the lists and maps of which all is shown. Returns the next value to show, after what stands
/// before it.
fn next_shown<'a>(
    f: &mut fmt::Formatter<'_>,
    levels: &mut Vec<OpenContainer<'a>>,
) -> Result<Option<&'a Payload>, fmt::Error> {
    while let Some(level) = levels.last_mut() {
        let (key, value) = match &mut level.left {
            Unshown::List(values) => (None, values.next()),
            Unshown::Map(entries) => entries.next().unzip(),
        };
        if value.is_none() {
            f.write_str(level.end())?;
            levels.pop();
            continue;
        }
        if !std::mem::replace(&mut level.is_first, false) {
            f.write_str(", ")?;
        }
        if let Some(key) = key {
            write!(f, "{key:?}: ")?;
        }
        return Ok(value);
    }
    Ok(None)
}

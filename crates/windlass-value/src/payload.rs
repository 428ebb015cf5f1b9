//! What messages, inputs and results are made of.

use std::any::Any;
use std::collections::{HashSet, btree_map};
use std::fmt;
use std::slice;
use std::sync::Arc;

use crate::containers::{PayloadList, PayloadMap};
use crate::pid::Pid;

/// A value that any process understands, also one in a guest language. Cheap to clone: what is large is
/// shared.
///
/// ```
/// use windlass_value::Payload;
///
/// let order = Payload::map([("id", 7.into()), ("item", "tea".into())]);
/// assert_eq!(order.get("item").and_then(Payload::as_text), Some("tea"));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Payload {
    /// Nothing.
    #[default]
    Nil,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// Values in an order.
    List(PayloadList),
    /// Values with names.
    Map(PayloadMap),
    /// The name of a process.
    Pid(Pid),
    /// A Rust value of any type; it does not leave this program.
    Opaque(Arc<dyn Any + Send + Sync>),
}

/// The arguments of a process.
pub type Payloads = Vec<Payload>;

impl Payload {
    /// A Rust value that only Rust code looks into.
    pub fn opaque<T: Any + Send + Sync>(value: T) -> Payload {
        Payload::Opaque(Arc::new(value))
    }

    /// Values with names.
    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Payload)>) -> Payload {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
        Payload::Map(entries.collect())
    }

    /// The truth, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Payload::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The whole number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Payload::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Payload::Float(value) => Some(*value),
            Payload::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Payload::Text(value) => Some(value),
            _ => None,
        }
    }

    /// The bytes, if it is some; text is bytes, too.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Payload::Bytes(value) => Some(value),
            Payload::Text(value) => Some(value.as_bytes()),
            _ => None,
        }
    }

    /// The values, if it is a list.
    pub fn as_list(&self) -> Option<&[Payload]> {
        match self {
            Payload::List(values) => Some(values),
            _ => None,
        }
    }

    /// The PID, if it is one.
    pub fn as_pid(&self) -> Option<Pid> {
        match self {
            Payload::Pid(pid) => Some(*pid),
            _ => None,
        }
    }

    /// The value with this name, if it is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Payload> {
        match self {
            Payload::Map(entries) => entries.get(key),
            _ => None,
        }
    }

    /// The Rust value, if it is opaque and of this type.
    pub fn downcast_ref<T: Any + Send + Sync>(&self) -> Option<&T> {
        match self {
            Payload::Opaque(value) => value.downcast_ref(),
            _ => None,
        }
    }

    /// Takes the Rust value out, if it is opaque, of this type, and nobody else holds it.
    pub fn take<T: Any + Send + Sync>(self) -> Result<T, Payload> {
        let Payload::Opaque(value) = self else {
            return Err(self);
        };
        let value = value.downcast::<T>().map_err(Payload::Opaque)?;
        Arc::try_unwrap(value).map_err(|shared| Payload::Opaque(shared))
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Payload) -> bool {
        compare(self, other).unwrap_or_else(|| have_equal_parts(self, other))
    }
}

/// Compares two payloads without a look into lists and maps. None: that look has to decide.
fn compare(a: &Payload, b: &Payload) -> Option<bool> {
    Some(match (a, b) {
        (Payload::Nil, Payload::Nil) => true,
        (Payload::Bool(a), Payload::Bool(b)) => a == b,
        (Payload::Int(a), Payload::Int(b)) => a == b,
        (Payload::Float(a), Payload::Float(b)) => a == b,
        (Payload::Text(a), Payload::Text(b)) => a == b,
        (Payload::Bytes(a), Payload::Bytes(b)) => a == b,
        // The same part is equal to itself.
        (Payload::List(a), Payload::List(b)) if a.address() == b.address() => true,
        (Payload::List(a), Payload::List(b)) if a.len() == b.len() => return None,
        (Payload::Map(a), Payload::Map(b)) if a.address() == b.address() => true,
        (Payload::Map(a), Payload::Map(b)) if a.len() == b.len() => return None,
        (Payload::Pid(a), Payload::Pid(b)) => a == b,
        // The same one: nothing is known about its inside.
        (Payload::Opaque(a), Payload::Opaque(b)) => Arc::ptr_eq(a, b),
        _ => false,
    })
}

/// Compares what is in two lists or two maps of the same length. Pairs of lists and maps inside of
/// them wait in a vector, not on the stack: there may be any number of levels.
fn have_equal_parts(a: &Payload, b: &Payload) -> bool {
    let mut waiting = vec![(a, b)];
    // Parts may be in 2^n places: each pair of them is compared once.
    let mut known = HashSet::new();
    let mut may_be_equal = |a, b, waiting: &mut Vec<_>| match compare(a, b) {
        Some(is_equal) => is_equal,
        None => {
            let (a_is_shared, a_part) = part_of(a);
            let (b_is_shared, b_part) = part_of(b);
            // A pair of which each part has one holder is met as often as the pair that holds it.
            if !(a_is_shared || b_is_shared) || known.insert((a_part, b_part)) {
                waiting.push((a, b));
            }
            true
        }
    };
    while let Some(pair) = waiting.pop() {
        let is_equal = match pair {
            (Payload::List(a), Payload::List(b)) => {
                let mut pairs = a.iter().zip(b.iter());
                pairs.all(|(a, b)| may_be_equal(a, b, &mut waiting))
            }
            (Payload::Map(a), Payload::Map(b)) => {
                let mut pairs = a.iter().zip(b.iter());
                pairs.all(|((key, a), (other, b))| key == other && may_be_equal(a, b, &mut waiting))
            }
            // Only lists and maps wait.
            _ => false,
        };
        if !is_equal {
            return false;
        }
    }
    true
}

/// Whether a list or map has other holders, and its address.
fn part_of(payload: &Payload) -> (bool, *const ()) {
    match payload {
        Payload::List(values) => (values.is_shared(), values.address()),
        Payload::Map(entries) => (entries.is_shared(), entries.address()),
        _ => (false, std::ptr::null()),
    }
}

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
struct Level<'a> {
    left: Left<'a>,
    is_first: bool,
}

/// What is not shown yet of a list or map.
enum Left<'a> {
    List(slice::Iter<'a, Payload>),
    Map(btree_map::Iter<'a, Arc<str>, Payload>),
}

impl<'a> Level<'a> {
    fn new(left: Left<'a>) -> Level<'a> {
        let is_first = true;
        Level { left, is_first }
    }

    fn end(&self) -> &'static str {
        match self.left {
            Left::List(_) => "]",
            Left::Map(_) => "}",
        }
    }
}

/// Shows a value; of a list or map the beginning.
fn show<'a>(
    payload: &'a Payload,
    f: &mut fmt::Formatter<'_>,
    levels: &mut Vec<Level<'a>>,
) -> fmt::Result {
    match payload {
        Payload::Nil => f.write_str("nil"),
        Payload::Bool(value) => write!(f, "{value}"),
        Payload::Int(value) => write!(f, "{value}"),
        Payload::Float(value) => write!(f, "{value:?}"),
        Payload::Text(value) => write!(f, "{value:?}"),
        Payload::Bytes(value) => write!(f, "{} bytes", value.len()),
        Payload::List(values) => {
            levels.push(Level::new(Left::List(values.iter())));
            f.write_str("[")
        }
        Payload::Map(entries) => {
            levels.push(Level::new(Left::Map(entries.iter())));
            f.write_str("{")
        }
        Payload::Pid(pid) => write!(f, "{pid}"),
        Payload::Opaque(_) => f.write_str("opaque"),
    }
}

/// Ends the lists and maps of which all is shown. Returns the next value to show, after what stands
/// before it.
fn next_shown<'a>(
    f: &mut fmt::Formatter<'_>,
    levels: &mut Vec<Level<'a>>,
) -> Result<Option<&'a Payload>, fmt::Error> {
    while let Some(level) = levels.last_mut() {
        let (key, value) = match &mut level.left {
            Left::List(values) => (None, values.next()),
            Left::Map(entries) => entries.next().unzip(),
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

macro_rules! from {
    ($($from:ty => $value:ident $variant:expr;)*) => { $(
        impl From<$from> for Payload {
            fn from($value: $from) -> Payload {
                $variant
            }
        }
    )* };
}

from! {
    () => _value Payload::Nil;
    bool => value Payload::Bool(value);
    i64 => value Payload::Int(value);
    i32 => value Payload::Int(value.into());
    u32 => value Payload::Int(value.into());
    f64 => value Payload::Float(value);
    &str => value Payload::Text(value.into());
    String => value Payload::Text(value.into());
    Arc<str> => value Payload::Text(value);
    Vec<u8> => value Payload::Bytes(value.into());
    &[u8] => value Payload::Bytes(value.into());
    Vec<Payload> => value Payload::List(value.into());
    Pid => value Payload::Pid(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opaque_value_is_taken_by_its_last_holder() {
        let payload = Payload::opaque(7_u8);
        let other = payload.clone();
        assert_eq!(payload.downcast_ref::<u8>(), Some(&7));
        let payload = payload.take::<u8>().expect_err("it is shared");
        assert_eq!(payload, other);
        drop(other);
        let payload = payload.take::<u16>().expect_err("another type");
        assert_eq!(payload.take::<u8>().ok(), Some(7));
    }
}

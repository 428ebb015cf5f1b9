//! The one value that crosses boundaries.
//!
//! A payload is never changed in place, so a reader cannot distinguish a shared one from a copy.
//! Text, bytes, lists and maps are shared; cloning a payload copies none of them.

use std::collections::HashSet;
use std::sync::Arc;

use crate::containers::{PayloadList, PayloadMap};
use crate::opaque::Opaque;
use crate::pid::Pid;

/// A value that every front end understands: a message of a process, an argument or result of a
/// guest, what an edge of a graph carries. Cheap to clone: what is large is shared.
///
/// ```
/// use windlass_value::Payload;
///
/// let order = Payload::map([("id", 7.into()), ("item", "tea".into())]);
/// assert_eq!(order.get("item").and_then(Payload::as_str), Some("tea"));
///
/// #[derive(Clone, PartialEq)]
/// struct Pose { x: f64 }
///
/// let payload = Payload::object(Pose { x: 1.0 });
/// assert_eq!(payload.downcast_ref::<Pose>().map(|pose| pose.x), Some(1.0));
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Payload {
    /// The absence of a value.
    #[default]
    Nil,
    /// A truth value: true or false.
    Bool(bool),
    /// A whole number of 64 bits.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text of Unicode characters.
    Text(Arc<str>),
    /// Bytes that need not be text.
    Bytes(Arc<[u8]>),
    /// Values in an order.
    List(PayloadList),
    /// Values with names.
    Map(PayloadMap),
    /// The name of a process.
    Pid(Pid),
    /// A Rust value of any type. It does not leave this program.
    Opaque(Opaque),
}

/// The arguments of a process.
pub type Payloads = Vec<Payload>;

impl Payload {
    /// Makes a map of values with names.
    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Payload)>) -> Payload {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value));
        Payload::Map(entries.collect())
    }

    /// Returns true if this is `Nil`.
    pub fn is_nil(&self) -> bool {
        matches!(self, Payload::Nil)
    }

    /// Returns the value if this is a `Bool`.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Payload::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the number if this is an `Int`.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Payload::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the number if this is a `Float` or an `Int`.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Payload::Float(value) => Some(*value),
            Payload::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    /// Returns the text if this is a `Text`.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Payload::Text(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the bytes if this is `Bytes` or a `Text`.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Payload::Bytes(value) => Some(value),
            Payload::Text(value) => Some(value.as_bytes()),
            _ => None,
        }
    }

    /// Returns the values if this is a `List`.
    pub fn as_list(&self) -> Option<&[Payload]> {
        match self {
            Payload::List(values) => Some(values),
            _ => None,
        }
    }

    /// Returns the PID if this is a `Pid`.
    pub fn as_pid(&self) -> Option<Pid> {
        match self {
            Payload::Pid(pid) => Some(*pid),
            _ => None,
        }
    }

    /// Returns the value of this name if this is a `Map` that has it.
    pub fn get(&self, key: &str) -> Option<&Payload> {
        match self {
            Payload::Map(entries) => entries.get(key),
            _ => None,
        }
    }

    /// Returns the kind of value in one word, as ports of graphs declare it. For a Rust value that
    /// is the name of its type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Payload::Nil => "empty",
            Payload::Bool(_) => "bool",
            Payload::Int(_) => "integer",
            Payload::Float(_) => "number",
            Payload::Text(_) => "text",
            Payload::Bytes(_) => "bytes",
            Payload::List(_) | Payload::Map(_) => "json",
            Payload::Pid(_) => "pid",
            Payload::Opaque(value) => value.type_name(),
        }
    }
}

/// Payloads are equal if they have the same kind and value: 1 and 1.0 are not. See [`Opaque`] for
/// how Rust values are compared.
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
        (Payload::Opaque(a), Payload::Opaque(b)) => a == b,
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
    Arc<[u8]> => value Payload::Bytes(value);
    Vec<Payload> => value Payload::List(value.into());
    Pid => value Payload::Pid(value);
}

//! What messages, inputs and results are made of.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::pid::Pid;

/// A value that any process understands, also one in a guest language. Cheap to clone: what is large is
/// shared.
///
/// ```
/// use windlass_process::Payload;
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
    List(Arc<[Payload]>),
    /// Values with names.
    Map(Arc<BTreeMap<Arc<str>, Payload>>),
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
        Payload::Map(Arc::new(entries.collect()))
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
        match (self, other) {
            (Payload::Nil, Payload::Nil) => true,
            (Payload::Bool(a), Payload::Bool(b)) => a == b,
            (Payload::Int(a), Payload::Int(b)) => a == b,
            (Payload::Float(a), Payload::Float(b)) => a == b,
            (Payload::Text(a), Payload::Text(b)) => a == b,
            (Payload::Bytes(a), Payload::Bytes(b)) => a == b,
            // The same part is not looked into: it may be in many places.
            (Payload::List(a), Payload::List(b)) => Arc::ptr_eq(a, b) || a == b,
            (Payload::Map(a), Payload::Map(b)) => Arc::ptr_eq(a, b) || a == b,
            (Payload::Pid(a), Payload::Pid(b)) => a == b,
            // The same one: nothing is known about its inside.
            (Payload::Opaque(a), Payload::Opaque(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// How many values a payload is shown with: parts that are in several places would be shown in each
/// of them.
const SHOWN: usize = 1000;

impl fmt::Debug for Payload {
    /// Shows the first thousand values that are in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self, &mut { SHOWN }, f)
    }
}

fn show(payload: &Payload, left: &mut usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if *left == 0 {
        return f.write_str("...");
    }
    *left -= 1;
    match payload {
        Payload::Nil => f.write_str("nil"),
        Payload::Bool(value) => write!(f, "{value}"),
        Payload::Int(value) => write!(f, "{value}"),
        Payload::Float(value) => write!(f, "{value:?}"),
        Payload::Text(value) => write!(f, "{value:?}"),
        Payload::Bytes(value) => write!(f, "{} bytes", value.len()),
        Payload::List(values) => {
            f.write_str("[")?;
            for (place, value) in values.iter().enumerate() {
                f.write_str(if place > 0 { ", " } else { "" })?;
                show(value, left, f)?;
                if *left == 0 {
                    break;
                }
            }
            f.write_str("]")
        }
        Payload::Map(entries) => {
            f.write_str("{")?;
            for (place, (key, value)) in entries.iter().enumerate() {
                write!(f, "{}{key:?}: ", if place > 0 { ", " } else { "" })?;
                show(value, left, f)?;
                if *left == 0 {
                    break;
                }
            }
            f.write_str("}")
        }
        Payload::Pid(pid) => write!(f, "{pid}"),
        Payload::Opaque(_) => f.write_str("opaque"),
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

//! What messages carry.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// What a message carries: a small value, or something shared.
///
/// A payload is never changed in place. So a reader that gets a *copy* cannot tell it from a shared one,
/// and no bytes are copied before somebody wants to change them ([`Payload::take`]).
///
/// ```
/// use windlass_value::graph::Payload;
///
/// #[derive(Clone, PartialEq)]
/// struct Pose { x: f64 }
///
/// let payload = Payload::object(Pose { x: 1.0 });
/// assert_eq!(payload.get::<Pose>().map(|pose| pose.x), Some(1.0));
/// assert_eq!(Payload::from(7).as_i64(), Some(7));
/// ```
#[derive(Clone, Default)]
pub enum Payload {
    /// Nothing but the fact that it was sent.
    #[default]
    Empty,
    /// true or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any number.
    Float(f64),
    /// Text.
    Text(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// What JSON can say.
    Json(Arc<Value>),
    /// A value of any other type.
    Object(Object),
}

/// A value of a type that only its users know.
#[derive(Clone)]
pub struct Object(Arc<dyn Opaque>);

trait Opaque: Send + Sync {
    fn value(&self) -> &dyn Any;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    fn type_name(&self) -> &'static str;
    /// Whether two may exist.
    fn may_be_copied(&self) -> bool;
    fn equals(&self, other: &dyn Any) -> bool;
}

/// A value with what its maker knew about its type.
struct Held<T> {
    value: T,
    /// How two are compared. None: there must be one only, which equals nothing.
    same: Option<fn(&T, &T) -> bool>,
}

impl<T: Send + Sync + 'static> Opaque for Held<T> {
    fn value(&self) -> &dyn Any {
        &self.value
    }
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
    fn type_name(&self) -> &'static str {
        type_name::<T>()
    }
    fn may_be_copied(&self) -> bool {
        self.same.is_some()
    }
    fn equals(&self, other: &dyn Any) -> bool {
        let other = other.downcast_ref::<T>();
        let same = self.same.zip(other);
        same.is_some_and(|(same, other)| same(&self.value, other))
    }
}

impl Payload {
    /// A value of any type.
    pub fn object<T: Clone + PartialEq + Send + Sync + 'static>(value: T) -> Payload {
        Payload::Object(Object(Arc::new(Held {
            value,
            same: Some(T::eq),
        })))
    }

    /// A value of which there must be one only: it cannot go to two readers, not over `copy` edges either.
    pub fn unique<T: Send + Sync + 'static>(value: T) -> Payload {
        Payload::Object(Object(Arc::new(Held { value, same: None })))
    }

    /// The value, if it is an object of this type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        match self {
            Payload::Object(object) => object.0.value().downcast_ref(),
            _ => None,
        }
    }

    /// The value itself, if it is an object of this type: without a copy if nobody else has it.
    ///
    /// # Errors
    /// The payload as it was, if it is not.
    pub fn take<T: Clone + PartialEq + Send + Sync + 'static>(self) -> Result<T, Payload> {
        let held = self.held::<T>()?;
        Ok(Arc::try_unwrap(held).map_or_else(|shared| shared.value.clone(), |held| held.value))
    }

    /// The value of this type with what is known about it; the payload as it was if it is of another.
    fn held<T: Send + Sync + 'static>(self) -> Result<Arc<Held<T>>, Payload> {
        match self {
            Payload::Object(object) if object.0.value().is::<T>() => {
                let held = object.0.into_any().downcast::<Held<T>>();
                Ok(held.expect("a value of this type is held as one"))
            }
            other => Err(other),
        }
    }

    /// The value of a `unique` one.
    ///
    /// # Errors
    /// The payload as it was, if it is of another type or somebody else still has it.
    pub fn take_unique<T: Send + Sync + 'static>(self) -> Result<T, Payload> {
        if self.may_be_copied() {
            return Err(self);
        }
        Arc::try_unwrap(self.held::<T>()?)
            .map(|held| held.value)
            .map_err(|shared| Payload::Object(Object(shared)))
    }

    /// The truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Payload::Bool(value) => Some(*value),
            Payload::Json(value) => value.as_bool(),
            _ => None,
        }
    }

    /// The whole number, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Payload::Int(value) => Some(*value),
            Payload::Json(value) => value.as_i64(),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Payload::Int(value) => Some(*value as f64),
            Payload::Float(value) => Some(*value),
            Payload::Json(value) => value.as_f64(),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Payload::Text(text) => Some(text),
            Payload::Json(value) => value.as_str(),
            _ => None,
        }
    }

    /// The bytes, if it is some; those of a text, too.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Payload::Bytes(bytes) => Some(bytes),
            Payload::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// What it is, in one word; for an object the name of its type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Payload::Empty => "empty",
            Payload::Bool(_) => "bool",
            Payload::Int(_) => "integer",
            Payload::Float(_) => "number",
            Payload::Text(_) => "text",
            Payload::Bytes(_) => "bytes",
            Payload::Json(_) => "json",
            Payload::Object(object) => object.0.type_name(),
        }
    }

    /// Whether two readers may have it.
    pub fn may_be_copied(&self) -> bool {
        match self {
            Payload::Object(object) => object.0.may_be_copied(),
            _ => true,
        }
    }

    /// As JSON; none for objects, which only their users know. Bytes become a list of numbers.
    pub fn to_json(&self) -> Option<Value> {
        Some(match self {
            Payload::Empty => Value::Null,
            Payload::Bool(value) => Value::from(*value),
            Payload::Int(value) => Value::from(*value),
            Payload::Float(value) => Value::from(*value),
            Payload::Text(text) => Value::from(&**text),
            Payload::Bytes(bytes) => Value::from(bytes.to_vec()),
            Payload::Json(value) => (**value).clone(),
            Payload::Object(_) => return None,
        })
    }

    /// From JSON: scalars become what they are, lists and maps stay JSON.
    pub fn from_json(value: Value) -> Payload {
        match value {
            Value::Null => Payload::Empty,
            Value::Bool(value) => Payload::Bool(value),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Payload::Int(whole),
                None => Payload::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Payload::from(text),
            other => Payload::Json(Arc::new(other)),
        }
    }
}

/// Equal payloads: same kind and value. Objects compare by their own `PartialEq`; unique ones equal nothing.
impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Payload::Empty, Payload::Empty) => true,
            (Payload::Bool(a), Payload::Bool(b)) => a == b,
            (Payload::Int(a), Payload::Int(b)) => a == b,
            (Payload::Float(a), Payload::Float(b)) => a == b,
            (Payload::Text(a), Payload::Text(b)) => a == b,
            (Payload::Bytes(a), Payload::Bytes(b)) => a == b,
            (Payload::Json(a), Payload::Json(b)) => a == b,
            (Payload::Object(a), Payload::Object(b)) => a.0.equals(b.0.value()),
            _ => false,
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Object(object) => write!(f, "Object({})", object.0.type_name()),
            Payload::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            other => match other.to_json() {
                Some(value) => write!(f, "{value}"),
                None => f.write_str("Payload"),
            },
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({})", self.0.type_name())
    }
}

/// What a typed port carries.
pub trait Data: Sized {
    /// The name of the type, as ports declare it; empty: anything.
    const TYPE: &'static str;
    /// As a payload.
    fn into_payload(self) -> Payload;
    /// From a payload, if it is of this type.
    fn from_payload(payload: &Payload) -> Option<Self>;
}

macro_rules! data {
    ($( $Type:ty, $name:literal, |$value:ident| $into:expr, |$payload:ident| $from:expr; )+) => { $(
        impl Data for $Type {
            const TYPE: &'static str = $name;
            fn into_payload(self) -> Payload { let $value = self; $into }
            fn from_payload($payload: &Payload) -> Option<Self> { $from }
        }
        impl From<$Type> for Payload {
            fn from(value: $Type) -> Payload { value.into_payload() }
        }
    )+ };
}

data! {
    (), "empty", |_unit| Payload::Empty, |payload| matches!(payload, Payload::Empty).then_some(());
    bool, "bool", |value| Payload::Bool(value), |payload| payload.as_bool();
    i64, "integer", |value| Payload::Int(value), |payload| payload.as_i64();
    i32, "integer", |value| Payload::Int(value.into()), |payload| payload.as_i64()?.try_into().ok();
    f64, "number", |value| Payload::Float(value), |payload| payload.as_f64();
    String, "text", |value| Payload::Text(value.into()), |payload| payload.as_str().map(str::to_owned);
    Arc<str>, "text", |value| Payload::Text(value), |payload| match payload {
        Payload::Text(text) => Some(text.clone()),
        other => other.as_str().map(Arc::from),
    };
    Vec<u8>, "bytes", |value| Payload::Bytes(value.into()), |payload| payload.as_bytes().map(<[u8]>::to_vec);
    Arc<[u8]>, "bytes", |value| Payload::Bytes(value), |payload| match payload {
        Payload::Bytes(bytes) => Some(bytes.clone()),
        other => other.as_bytes().map(Arc::from),
    };
    Value, "json", |value| Payload::Json(Arc::new(value)), |payload| payload.to_json();
}

impl Data for Payload {
    const TYPE: &'static str = "";
    fn into_payload(self) -> Payload {
        self
    }
    fn from_payload(payload: &Payload) -> Option<Self> {
        Some(payload.clone())
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Payload {
        Payload::Text(text.into())
    }
}

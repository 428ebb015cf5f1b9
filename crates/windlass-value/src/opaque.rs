//! Rust values inside of payloads.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use crate::payload::Payload;

/// A Rust value of any type in a payload. Only Rust code that knows the type looks into it.
///
/// | made by | two are equal | may be shared |
/// |---|---|---|
/// | [`Payload::opaque`] | if they are one value | yes |
/// | [`Payload::object`] | if the type's `==` says so | yes |
/// | [`Payload::unique`] | never | no: a graph does not deliver it to two readers |
///
/// In a list or map a unique value is shared with the list or map.
#[derive(Clone)]
pub struct Opaque(Arc<dyn AnyValue>);

/// A value with what its maker said about its type.
struct Typed<T> {
    value: T,
    equality: Equality<T>,
}

/// How a value is compared with another of its type.
enum Equality<T> {
    Identity,
    Value(fn(&T, &T) -> bool),
    Never,
}

trait AnyValue: Send + Sync {
    fn value(&self) -> &dyn Any;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    fn type_name(&self) -> &'static str;
    fn may_be_copied(&self) -> bool;
    fn equals(&self, other: &dyn Any) -> bool;
}

impl<T: Any + Send + Sync> AnyValue for Typed<T> {
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
        !matches!(self.equality, Equality::Never)
    }

    fn equals(&self, other: &dyn Any) -> bool {
        let Some(other) = other.downcast_ref::<T>() else {
            return false;
        };
        match self.equality {
            Equality::Identity => std::ptr::eq(&raw const self.value, other),
            Equality::Value(equal) => equal(&self.value, other),
            Equality::Never => false,
        }
    }
}

impl Opaque {
    fn new<T: Any + Send + Sync>(value: T, equality: Equality<T>) -> Opaque {
        Opaque(Arc::new(Typed { value, equality }))
    }

    /// Returns the value if it is of this type.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.0.value().downcast_ref()
    }

    /// Returns the name of the value's type.
    pub fn type_name(&self) -> &'static str {
        self.0.type_name()
    }

    fn downcast<T: Any + Send + Sync>(self) -> Result<Arc<Typed<T>>, Opaque> {
        if !self.0.value().is::<T>() {
            return Err(self);
        }
        let typed = self.0.into_any().downcast::<Typed<T>>();
        Ok(typed.expect("a value of this type is stored as one"))
    }
}

impl Payload {
    /// Makes a payload of a Rust value. Two payloads are equal if they hold the same one.
    pub fn opaque<T: Any + Send + Sync>(value: T) -> Payload {
        Payload::Opaque(Opaque::new(value, Equality::Identity))
    }

    /// Makes a payload of a Rust value. Two payloads are equal if their values are.
    pub fn object<T: Clone + PartialEq + Any + Send + Sync>(value: T) -> Payload {
        Payload::Opaque(Opaque::new(value, Equality::Value(T::eq)))
    }

    /// Makes a payload of a Rust value of which there must be one only: a graph does not deliver it
    /// to two readers, not over `copy` edges either. It equals no other payload.
    pub fn unique<T: Any + Send + Sync>(value: T) -> Payload {
        Payload::Opaque(Opaque::new(value, Equality::Never))
    }

    /// Returns the Rust value if this is one of this type.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        match self {
            Payload::Opaque(value) => value.downcast_ref(),
            _ => None,
        }
    }

    /// Takes the Rust value out of a payload without a clone.
    ///
    /// # Errors
    /// Returns the payload as it was if it holds no value of this type, or if the payload has other
    /// clones.
    pub fn take<T: Any + Send + Sync>(self) -> Result<T, Payload> {
        Arc::try_unwrap(self.into_typed::<T>()?)
            .map(|typed| typed.value)
            .map_err(|shared| Payload::Opaque(Opaque(shared)))
    }

    /// Takes the Rust value out of a payload; clones the value if the payload has other clones.
    ///
    /// # Errors
    /// Returns the payload as it was if it holds no value of this type, or if the value is
    /// [`unique`](Payload::unique) and the payload has other clones.
    pub fn take_or_clone<T: Clone + Any + Send + Sync>(self) -> Result<T, Payload> {
        match Arc::try_unwrap(self.into_typed::<T>()?) {
            Ok(typed) => Ok(typed.value),
            Err(shared) if shared.may_be_copied() => Ok(shared.value.clone()),
            Err(shared) => Err(Payload::Opaque(Opaque(shared))),
        }
    }

    fn into_typed<T: Any + Send + Sync>(self) -> Result<Arc<Typed<T>>, Payload> {
        match self {
            Payload::Opaque(value) => value.downcast().map_err(Payload::Opaque),
            other => Err(other),
        }
    }

    /// Returns true if two readers may have this payload: all but [`unique`](Payload::unique) ones.
    pub fn may_be_copied(&self) -> bool {
        match self {
            Payload::Opaque(value) => value.0.may_be_copied(),
            _ => true,
        }
    }
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Opaque) -> bool {
        self.0.equals(other.0.value())
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opaque {}", self.type_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq)]
    struct Pose(f64);

    #[test]
    fn an_opaque_value_is_taken_by_its_last_holder() {
        let payload = Payload::opaque(7_u8);
        let other = payload.clone();
        assert_eq!(payload.downcast_ref::<u8>(), Some(&7));
        let payload = payload.take::<u8>().expect_err("it is shared");
        assert_eq!(payload, other);
        assert_ne!(payload, Payload::opaque(7_u8));
        drop(other);
        let payload = payload.take::<u16>().expect_err("another type");
        assert_eq!(payload.take::<u8>().ok(), Some(7));
    }

    #[test]
    fn values_without_a_size_are_compared_by_identity_too() {
        let one = Payload::opaque(());
        assert_eq!(one, one.clone());
        assert_ne!(one, Payload::opaque(()));
    }

    #[test]
    fn an_object_is_taken_out_without_a_copy_if_nobody_else_has_it() {
        #[derive(PartialEq)]
        struct Fragile(u8);
        impl Clone for Fragile {
            fn clone(&self) -> Fragile {
                panic!("copied without need")
            }
        }
        let taken = Payload::object(Fragile(7)).take_or_clone::<Fragile>();
        assert!(taken.is_ok_and(|fragile| fragile.0 == 7));
        let shared = Payload::object(Pose(1.0));
        let other = shared.clone();
        assert_eq!(shared.take_or_clone::<Pose>(), Ok(Pose(1.0)));
        assert_eq!(other.downcast_ref::<Pose>(), Some(&Pose(1.0)));
    }

    #[test]
    fn a_payload_of_another_type_comes_back_as_it_was() {
        assert_eq!(Payload::from(7).take::<Pose>(), Err(Payload::from(7)));
        let back = Payload::object(Pose(1.0))
            .take_or_clone::<String>()
            .unwrap_err();
        assert_eq!(back.take::<Pose>(), Ok(Pose(1.0)));
    }

    #[test]
    fn of_a_unique_object_there_is_one_only() {
        let unique = Payload::unique(Pose(2.0));
        assert!(!unique.may_be_copied() && unique != unique.clone());
        let other = unique.clone();
        let back = unique.take_or_clone::<Pose>().unwrap_err();
        drop(other);
        assert_eq!(back.take::<Pose>(), Ok(Pose(2.0)));
    }

    #[test]
    fn objects_are_compared_by_their_type() {
        assert_eq!(Payload::object(Pose(1.0)), Payload::object(Pose(1.0)));
        assert_ne!(Payload::object(Pose(1.0)), Payload::object(Pose(2.0)));
        assert_ne!(Payload::object(1_u8), Payload::object(1_u16));
    }
}

//! The types that typed ports of a graph carry.

use std::sync::Arc;

use crate::payload::Payload;

/// A type that a typed port of a graph carries.
pub trait Data: Sized {
    /// The name of the type, as ports declare it. An empty name takes any payload.
    const TYPE: &'static str;
    /// Turns the value into a payload.
    fn into_payload(self) -> Payload;
    /// Returns the value of a payload; none if the payload is of another type.
    fn from_payload(payload: &Payload) -> Option<Self>;
}

macro_rules! data {
    ($( $Type:ty, $name:literal, |$payload:ident| $from:expr; )+) => { $(
        impl Data for $Type {
            const TYPE: &'static str = $name;
            fn into_payload(self) -> Payload { self.into() }
            fn from_payload($payload: &Payload) -> Option<Self> { $from }
        }
    )+ };
}

data! {
    (), "empty", |payload| payload.is_nil().then_some(());
    bool, "bool", |payload| payload.as_bool();
    i64, "integer", |payload| payload.as_i64();
    i32, "integer", |payload| payload.as_i64()?.try_into().ok();
    f64, "number", |payload| payload.as_f64();
    String, "text", |payload| payload.as_str().map(str::to_owned);
    Arc<str>, "text", |payload| match payload {
        Payload::Text(text) => Some(text.clone()),
        _ => None,
    };
    Vec<u8>, "bytes", |payload| payload.as_bytes().map(<[u8]>::to_vec);
    Arc<[u8]>, "bytes", |payload| match payload {
        Payload::Bytes(bytes) => Some(bytes.clone()),
        other => other.as_bytes().map(Arc::from),
    };
    Payload, "", |payload| Some(payload.clone());
}

#[cfg(feature = "json")]
data! {
    serde_json::Value, "json", |payload| payload.to_json().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_ports_read_what_fits() {
        assert_eq!(f64::from_payload(&Payload::from(3)), Some(3.0));
        assert_eq!(i64::from_payload(&Payload::from(3.5)), None);
        assert_eq!(i32::from_payload(&Payload::from(i64::MAX)), None);
        let text = String::from_payload(&Payload::from("a"));
        assert_eq!(text.as_deref(), Some("a"));
        assert_eq!(Vec::<u8>::from_payload(&Payload::from("a")), Some(vec![97]));
    }
}

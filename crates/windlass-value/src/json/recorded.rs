//! The recorded form, for fields of serde-derived types:
//! `#[serde(with = "windlass_value::recorded")]`.

use serde::de::DeserializeSeed;
use serde::{Deserializer, Serializer};

use super::{Form, PayloadReader, PayloadWriter};
use crate::payload::Payload;

/// Writes a payload in the recorded form.
///
/// # Errors
/// If a Rust value is in it, or too many values or levels, or as the serializer says.
pub fn serialize<S: Serializer>(payload: &Payload, to: S) -> Result<S::Ok, S::Error> {
    PayloadWriter::new(Form::Recorded).write(payload, to)
}

/// Reads a payload in the recorded form.
///
/// # Errors
/// If it is not the recorded form of a payload, or as the deserializer says.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Payload, D::Error> {
    PayloadReader(Form::Recorded).deserialize(from)
}

/// The recorded form with the names of types in place of Rust values, for fields of
/// serde-derived types.
pub mod or_type_name {
    pub use super::deserialize;
    use super::{Form, Payload, PayloadWriter, Serializer};

    /// Writes a payload in the recorded form, and for Rust values the names of their types.
    ///
    /// # Errors
    /// If there are too many values or levels in it, or as the serializer says.
    pub fn serialize<S: Serializer>(payload: &Payload, to: S) -> Result<S::Ok, S::Error> {
        PayloadWriter::new(Form::RecordedOrTypeName).write(payload, to)
    }

    /// The same form for a map of payloads.
    pub mod values {
        use std::collections::BTreeMap;

        use serde::{Deserialize, Serialize};

        use super::super::{Deserializer, Payload, Serializer};

        #[derive(Serialize)]
        #[serde(transparent)]
        struct Written<'a>(#[serde(serialize_with = "write")] &'a Payload);

        #[derive(Deserialize)]
        #[serde(transparent)]
        struct Read(#[serde(with = "super")] Payload);

        fn write<S: Serializer>(payload: &&Payload, to: S) -> Result<S::Ok, S::Error> {
            super::serialize(payload, to)
        }

        /// Writes a map of payloads in the recorded form.
        ///
        /// # Errors
        /// If there are too many values or levels in one, or as the serializer says.
        pub fn serialize<S: Serializer>(
            values: &BTreeMap<String, Payload>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            to.collect_map(values.iter().map(|(key, value)| (key, Written(value))))
        }

        /// Reads a map of payloads in the recorded form.
        ///
        /// # Errors
        /// If one is not the recorded form of a payload, or as the deserializer says.
        pub fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<BTreeMap<String, Payload>, D::Error> {
            let values = BTreeMap::<String, Read>::deserialize(from)?;
            Ok(values
                .into_iter()
                .map(|(key, Read(value))| (key, value))
                .collect())
        }
    }
}

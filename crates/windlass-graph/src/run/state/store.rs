//! The state store: keyed values that all components see, and that change between epochs only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_value::{Payload, recorded};

/// Keyed values. What is written in an epoch is visible from the next on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Store {
    #[serde(with = "recorded::or_type_name::values")]
    values: BTreeMap<String, Payload>,
}

impl Store {
    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&Payload> {
        self.values.get(key)
    }

    /// All keys with their values, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Payload)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn set(&mut self, key: &str, value: Payload) {
        match self.values.get_mut(key) {
            Some(there) => *there = value,
            None => {
                self.values.insert(key.to_owned(), value);
            }
        }
    }
}

impl FromIterator<(String, Payload)> for Store {
    fn from_iter<I: IntoIterator<Item = (String, Payload)>>(pairs: I) -> Store {
        Store {
            values: pairs.into_iter().collect(),
        }
    }
}

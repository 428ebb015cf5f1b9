//! An event of a run, as an observer sees it.

use serde::Serialize;
use serde_json::{Map, Value};

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Observed {
    /// From 1, without a gap; those that are missing were dropped or filtered out.
    pub seq: u64,
    /// The epoch; 0 before the first.
    pub epoch: u64,
    /// The name of the event.
    pub name: String,
    /// The component that it is about; may be empty.
    pub component_id: String,
    /// The edge that it is about; may be empty.
    pub channel_id: String,
    /// The lane that it is about; may be empty.
    pub lane: String,
    /// The time since the run began, in nanoseconds.
    pub at_ns: u64,
    /// What else is known of it, by name.
    pub attributes: Map<String, Value>,
}

impl Observed {
    pub(crate) fn new(name: &str, epoch: u64, at_ns: u64) -> Observed {
        Observed {
            epoch,
            name: name.to_owned(),
            at_ns,
            ..Observed::default()
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Observed {
        self.attributes.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the event as JSON with sorted keys: a line of `graph observe`.
    pub fn to_json(&self) -> Value {
        // Every key is a text, so there is nothing that JSON cannot hold.
        serde_json::to_value(self).unwrap_or_default()
    }
}

//! What an observer is told.

use serde_json::{Map, Value, json};

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observed {
    /// From 1, without a gap; those that are missing were dropped or filtered out.
    pub seq: u64,
    /// The epoch; 0 before the first.
    pub epoch: u64,
    /// What.
    pub name: String,
    /// Who; may be empty.
    pub component_id: String,
    /// Over which edge; may be empty.
    pub channel_id: String,
    /// On which lane; may be empty.
    pub lane: String,
    /// Since the run began.
    pub at_ns: u64,
    /// What else there is to say.
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

    /// As JSON: a line of `graph observe`.
    pub fn to_json(&self) -> Value {
        json!({
            "seq": self.seq,
            "epoch": self.epoch,
            "name": self.name,
            "component_id": self.component_id,
            "channel_id": self.channel_id,
            "lane": self.lane,
            "at_ns": self.at_ns,
            "attributes": self.attributes,
        })
    }
}

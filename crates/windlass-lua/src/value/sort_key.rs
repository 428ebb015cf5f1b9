//! The order of the keys of a table.

use std::fmt::{self, Write};
use std::sync::Arc;

use windlass_value::Payload;

/// Bytes of the text that tables which are keys are sorted by.
const SORTED_BY: usize = 256;

/// What a key is sorted by. Texts by all of their bytes; tables by the beginning of what they are
/// written as: a table that is reached in several ways is written in each of them, which can take
/// more memory than the process has.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SortKey {
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Other(Box<str>),
}

impl SortKey {
    pub(super) fn of(key: &Payload) -> SortKey {
        match key {
            Payload::Text(text) => SortKey::Text(text.clone()),
            Payload::Bytes(bytes) => SortKey::Bytes(bytes.clone()),
            other => {
                let mut beginning = Prefix(String::new());
                // An error: there is enough.
                let _ = write!(beginning, "{other:?}");
                SortKey::Other(beginning.0.into())
            }
        }
    }

    /// What it takes beside the key itself.
    pub(super) fn bytes(&self) -> usize {
        match self {
            SortKey::Other(text) => size_of::<SortKey>() + text.len(),
            _ => size_of::<SortKey>(),
        }
    }
}

/// Takes the beginning of a text, and refuses the rest.
struct Prefix(String);

impl fmt::Write for Prefix {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = SORTED_BY.saturating_sub(self.0.len());
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        match room > text.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}

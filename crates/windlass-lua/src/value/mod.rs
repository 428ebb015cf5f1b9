//! From Lua's values to payloads, and back: what can be sent.
//!
//! | Lua | payload |
//! |---|---|
//! | nil, boolean, integer, float | the same |
//! | string | text, or bytes if it is not UTF-8 |
//! | table with the keys 1 to n | a list |
//! | table with text keys, or empty | a map |
//! | table with other keys | a map with the one entry `#entries`: keys and values in turn |
//! | table with the one key `#entries` | the same, so that it is not taken for the form above |
//! | PID, buffer | a PID, bytes (which arrive as a string) |
//! | `json.null` | nil |
//!
//! Functions, coroutines, channels and other userdata cannot be sent, and no table that contains
//! itself.
//!
//! A table that is reached in several ways is converted once, and arrives as one table: a value of
//! a few tables can have 2^n ways through it. What a value takes as a payload is memory of the
//! host, which the limit of the Lua state does not see: it has to fit into what is left of that
//! limit ([`MemoryBudget`]).
//!
//! What arrives may come from anywhere: from another script, from Rust code, from another node,
//! from a recording. A map with the one entry `#entries` that no table can have (an odd number of
//! values, nil or NaN as a key) arrives as a table with the key `#entries`. A value that is too
//! deep or does not fit into the memory of the receiver is an error that the receiver can catch;
//! `task_set` sees to that.

mod map_form;
mod memory_budget;
mod sort_key;
mod to_lua;
mod to_payload;
mod unsendable;
mod userdata;

pub(crate) use self::map_form::{MapForm, form_of};
pub(crate) use self::memory_budget::{MemoryBudget, MemoryLimit, fitting};
pub(crate) use self::to_lua::{to_lua, to_lua_with_null};
pub(crate) use self::to_payload::to_payload;
pub use self::unsendable::Unsendable;
pub(crate) use self::userdata::{Buffer, LuaPid};

/// The one entry of the map that a table is whose keys are neither 1 to n nor texts.
pub(crate) const ENTRIES: &str = "#entries";

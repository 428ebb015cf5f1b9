//! Observation: one model of what lives in a runtime.
//!
//! Every part of a runtime (the engine, the blocking pool, dispatchers, coroutines) and every front
//! end (processes, guests, graphs, HTTP servers) is a source. A source has *samples*, which are
//! numbers with names, and *entities*, which are the things that live in it. Samples are few: they
//! are counted per worker and per named thing, never per task. Entities may be a million, so they
//! are visited page by page and never collected whole.
//!
//! [`RuntimeSnapshot`] has the samples of all sources and the first entities
//! of each; `debug_dump` prints a snapshot. Nothing else reads the parts of a runtime.

mod dump;
mod entity;
mod runtime_sources;
mod sample;
mod snapshot;
mod sources;

pub use entity::{Cursor, Entity, Page, Query};
pub use sample::{Sample, SampleKind};
pub use snapshot::{RuntimeSnapshot, SourceSnapshot};
pub use sources::Observe;

pub(crate) use dump::dump;
pub(crate) use snapshot::snapshot;
pub(crate) use sources::Observers;

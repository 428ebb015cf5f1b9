//! Recordings of runs: what came from outside and what was decided by the clock, so that a run can be had again.
//!
//! A recording is a folder. `run.ndjson` in it has a line for each thing, in the order in which it happened:
//!
//! | line | says |
//! |---|---|
//! | `{"windlass_recording":2,...}` | the first: which graph, which components are *played back*, whether time was real |
//! | `{"epoch":n,...}` | an epoch begins: what came from outside, the lanes' clocks if time was real, new configurations |
//! | `{"call":n,...}` | an invocation has ended: what it published, wrote, reported |
//! | `{"loop":"id",...}` | a loop was stopped by the clock or by somebody |
//! | `{"end":"reason",...}` | the last: why the run ended, and a hash of all that it did |
//!
//! All but the first and the last end with a checksum (`sum`) of everything up to them, so that the first line that
//! was edited afterwards can be named. Recordings of earlier versions have none.
//!
//! A recording without its last line (the program was killed, the disk was full) breaks off in its last epoch: what
//! is missing of that cannot be told from what did not happen. So it is left out, and the epochs before it count.
//!
//! `graph.yaml` beside it is the file that was run, if it was a file.
//!
//! In a replay the components at the boundary, those without an input, and those with something outside are played
//! back: they are not called, and what they published then is published again. All others are called. What they do
//! is compared with the recording, line by line; the first difference is kept.

mod digest;
mod entry;
mod line;
mod playback;
mod reader;
mod tape;
mod writer;

pub(crate) use digest::Digest;
pub(crate) use entry::{CallEntry, Entry, EpochEntry, LoopEntry, Output, Seen};
pub(crate) use line::{payload, payload_json};
pub use playback::{Difference, Replayed};
pub(crate) use playback::{Playback, Script};
pub use reader::{Recording, RecordingError};
pub(crate) use tape::{Kind as TapeKind, Tape};
pub(crate) use writer::{Header, Writer};

/// The version of recordings.
pub(crate) const VERSION: u64 = 2;
/// The file of a recording's lines.
pub(crate) const RUN_FILE: &str = "run.ndjson";
/// Invocations of loops beside the epochs have numbers from here on.
pub(crate) const BESIDE_SHIFT: u32 = 40;
/// What stands before the checksum of a line. It is the last field, so that the text before it is the text that
/// was summed up.
pub(crate) const SUM_FIELD: &str = ",\"sum\":\"";
/// The file that was run.
pub(crate) const GRAPH_FILE: &str = "graph.yaml";

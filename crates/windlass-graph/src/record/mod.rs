//! Recordings of runs: what came from outside and what was decided by the clock, so that a run can
//! be had again.
//!
//! A recording is a folder. `run.ndjson` in it is the recording (see [`windlass_record`]), with
//! these lines in the order in which things happened:
//!
//! | line | says |
//! |---|---|
//! | the header | which graph, which components are *played back*, whether time was real |
//! | `{"epoch":{..}}` | an epoch begins: what came from outside, the lanes' clocks if time was real, new configurations |
//! | `{"call":{..}}` | an invocation has ended: what it published, wrote, reported |
//! | `{"loop":{..}}` | a loop was stopped by the clock, or because the run was asked to stop |
//! | `{"end":{..}}` | the last: why the run ended, and a hash of all that it did |
//!
//! A recording without its last line breaks off in its last epoch: what is missing of that cannot
//! be told from what did not happen. So it is left out, and the epochs before it count.
//!
//! `graph.yaml` beside it is the file that was run, if it was a file.
//!
//! In a replay the components at the boundary, those without an input, and those with a door are
//! played back: they are not called, and what they published then is published again. All others
//! are called. What they do is compared with the recording, line by line; the first difference is
//! kept.

mod line;
mod playback;
mod recording;

pub(crate) use line::{
    CallLine, DoorRecord, EndLine, EpochLine, GraphFormat, Header, LaneTurn, Line, LoopLine, Names,
    OutputLine, ReportLine, StoreWrite,
};
pub(crate) use playback::{Playback, RecordedDecisions};
pub use playback::{Replayed, RunDifference};
pub use recording::Recording;
pub(crate) use recording::create;

/// The file of a recording's lines.
pub(crate) const RUN_FILE: &str = "run.ndjson";
/// Invocations of loops beside the epochs have numbers from here on.
pub(crate) const BESIDE_SHIFT: u32 = 40;
/// The file that was run.
pub(crate) const GRAPH_FILE: &str = "graph.yaml";

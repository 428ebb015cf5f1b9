//! Recordings: a file that says what a run did, so that the run can be had again and compared.
//!
//! A recording is a text file with one JSON object per line:
//!
//! | line | says |
//! |---|---|
//! | `{"windlass_recording":"graph",..}` | the first: the kind, version and writer; the header |
//! | `{"call":{..},"sum":"1a63fc44"}` | something that happened, in the order in which it happened |
//! | `{"end":{..},"sum":"7eaa9e29"}` | the last: how it ended |
//!
//! This crate knows the container. What is recorded is a [`Format`], which only defines the types
//! of its header, lines and end; serde writes and reads them.
//!
//! `sum` is a checksum of all lines up to its own, so a reader can name the first line that was
//! edited. A file without its last line breaks off: the program was killed, the disk was full, or
//! the recording was as large as it may be. [`Recording::open`] takes what is there.
//!
//! [`Comparison`] compares what a replay does with a recording, and finds the first [`Difference`].
//!
//! Applications use the `windlass` crate, whose front ends define formats.
#![forbid(unsafe_code)]

mod comparison;
mod digest;
mod error;
mod format;
mod reader;
mod writer;

pub use comparison::{Comparison, Difference};
pub use digest::Digest;
pub use error::RecordingError;
pub use format::Format;
pub use reader::Recording;
pub use writer::Writer;

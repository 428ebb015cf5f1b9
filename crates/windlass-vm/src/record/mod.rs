//! Recordings: every decision of the reactor and everything that came from outside, a line each.

mod answer_log;
mod ending;
mod line;
mod recording_reader;

pub(crate) use self::answer_log::{AnswerLog, shown, shown_value};
pub(crate) use self::line::{End, Header, Line, RecordedPayload, Source};
pub(crate) use self::recording_reader::RecordingReader;

/// A recording that is being written.
pub(crate) type Writer = windlass_record::Writer<line::VmFormat>;

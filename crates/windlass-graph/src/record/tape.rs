//! Where a run's lines go: to a file, to be compared, or into a list until they can.

use std::sync::Arc;

use windlass_record::{Digest, Writer};

use super::line::{GraphFormat, Line, Names};
use super::playback::Playback;

/// What a run writes down about itself.
#[derive(Debug)]
pub(crate) struct Tape {
    kind: Kind,
    names: Arc<Names>,
}

/// Where lines go.
#[derive(Debug)]
pub(crate) enum Kind {
    /// To a file.
    Record(Box<Writer<GraphFormat>>),
    /// Compared with a recording.
    Replay(Box<Playback>),
    /// Kept until a part of the run comes back.
    Keep(Vec<Line>),
}

impl Tape {
    pub(crate) fn new(kind: Kind, names: Arc<Names>) -> Tape {
        Tape { kind, names }
    }

    /// Makes a tape for a part of the run, which keeps its lines.
    pub(crate) fn of_part(&self) -> Tape {
        Tape::new(Kind::Keep(Vec::new()), self.names.clone())
    }

    /// Returns the names of the graph's parts.
    pub(crate) fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Takes a line; returns what went wrong.
    pub(crate) fn push(&mut self, line: Line) -> Result<(), String> {
        match &mut self.kind {
            Kind::Record(writer) => writer.line(&line).map_err(|error| error.to_string()),
            Kind::Replay(playback) => {
                playback.compare(&line);
                Ok(())
            }
            Kind::Keep(lines) => {
                lines.push(line);
                Ok(())
            }
        }
    }

    /// Returns what is played back, if something is.
    pub(crate) fn playback(&mut self) -> Option<&mut Playback> {
        match &mut self.kind {
            Kind::Replay(playback) => Some(playback),
            _ => None,
        }
    }

    /// Returns where the lines went, and the hash of all that went there.
    pub(crate) fn open(self) -> (Kind, Digest) {
        let digest = match &self.kind {
            Kind::Record(writer) => writer.digest(),
            Kind::Replay(playback) => playback.digest(),
            Kind::Keep(_) => Digest::default(),
        };
        (self.kind, digest)
    }
}

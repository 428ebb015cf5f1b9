//! Where a run's entries go: to a file, to be compared, or into a list until they can.

use super::digest::Digest;
use super::entry::Entry;
use super::playback::Playback;
use super::writer::Writer;

/// What a run writes down about itself.
#[derive(Debug)]
pub(crate) struct Tape {
    kind: Kind,
    digest: Digest,
}

/// Where entries go.
#[derive(Debug)]
pub(crate) enum Kind {
    /// To a file.
    Record(Box<Writer>),
    /// Compared with a recording.
    Replay(Box<Playback>),
    /// Kept until a part of the run comes back.
    Keep(Vec<Entry>),
}

impl Tape {
    pub(crate) fn new(kind: Kind) -> Tape {
        Tape {
            kind,
            digest: Digest::default(),
        }
    }

    /// Takes an entry; gives what went wrong.
    pub(crate) fn push(&mut self, entry: Entry) -> Result<(), String> {
        if let Kind::Keep(entries) = &mut self.kind {
            entries.push(entry);
            return Ok(());
        }
        let line = entry.to_json().to_string();
        self.digest.bytes(line.as_bytes());
        match &mut self.kind {
            Kind::Record(writer) => writer
                .summed_line(line, &self.digest.sum())
                .map_err(|error| error.to_string()),
            Kind::Replay(playback) => {
                playback.compare(&entry);
                Ok(())
            }
            Kind::Keep(_) => Ok(()),
        }
    }

    /// What is played back, if something is.
    pub(crate) fn playback(&mut self) -> Option<&mut Playback> {
        match &mut self.kind {
            Kind::Replay(playback) => Some(playback),
            _ => None,
        }
    }

    /// Where it goes, and the hash of all that went there.
    pub(crate) fn open(self) -> (Kind, Digest) {
        (self.kind, self.digest)
    }
}

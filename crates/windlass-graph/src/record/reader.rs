//! Reading a recording.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::digest::Digest;
use super::entry::Entry;
use super::playback::PlayedBack;
use super::writer::Header;
use super::{BESIDE_SHIFT, GRAPH_FILE, RUN_FILE, SUM_FIELD, VERSION};
use crate::run::{Snapshot, StopReason};
use windlass_plan::model::{Graph, LoopKind};

/// A recording of a run, from [`RunOptions::record`](crate::RunOptions).
#[derive(Debug, Clone)]
pub struct Recording {
    pub(crate) header: Header,
    pub(crate) lanes: Vec<String>,
    pub(crate) edges: Vec<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) end: Option<End>,
    /// The first line that was changed after it was written.
    pub(crate) edited: Option<Edited>,
    graph_text: Option<String>,
}

/// A line whose checksum is not that of the text up to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edited {
    /// Which entry it is, from 0.
    pub(crate) entry: usize,
    /// Which line of the file it is, from 1.
    pub(crate) line: usize,
}

/// Finds the first line that was changed after it was written.
#[derive(Debug, Default)]
struct Sums {
    digest: Digest,
    /// Whether lines have checksums: recordings of earlier versions have none.
    are_there: bool,
}

impl Sums {
    /// Takes the next line; gives whether it is as it was written.
    fn take(&mut self, line: &str) -> bool {
        let Some((text, sum)) = line.rsplit_once(SUM_FIELD) else {
            return !self.are_there;
        };
        self.are_there = true;
        self.digest.bytes(format!("{text}}}").as_bytes());
        sum.strip_suffix("\"}") == Some(self.digest.sum().as_str())
    }
}

/// The last line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) reason: StopReason,
    pub(crate) hash: String,
}

/// Why a recording cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordingError {
    /// A file cannot be read.
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no recording, or one of another version.
    Foreign {
        /// Which file.
        file: PathBuf,
    },
    /// A line makes no sense.
    BadLine {
        /// Which file.
        file: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// The last line is missing: the run was killed, or the recording was as large as it may be.
    Truncated {
        /// How many epochs there are.
        epochs: u64,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::Read { file, source } => {
                write!(f, "cannot read {}: {source}", file.display())
            }
            RecordingError::Foreign { file } => write!(
                f,
                "{} is no recording of version {VERSION}: name the folder that was given to record",
                file.display()
            ),
            RecordingError::BadLine { file, line } => {
                write!(f, "{}:{line}: this line makes no sense", file.display())
            }
            RecordingError::Truncated { epochs } => write!(
                f,
                "the recording ends after {epochs} epochs without saying why: replay it as a part"
            ),
        }
    }
}

impl std::error::Error for RecordingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordingError::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Recording {
    /// Reads the recording in a folder.
    pub fn open(folder: &Path) -> Result<Recording, RecordingError> {
        let recording = Recording::open_part(folder)?;
        match recording.is_complete() {
            true => Ok(recording),
            false => Err(RecordingError::Truncated {
                epochs: recording.epochs(),
            }),
        }
    }

    /// As `open`, and takes what is there of one that is not complete.
    pub fn open_part(folder: &Path) -> Result<Recording, RecordingError> {
        let file = folder.join(RUN_FILE);
        let read = |source| RecordingError::Read {
            file: file.clone(),
            source,
        };
        // As bytes: a line that was cut off may end within a character.
        let mut lines = BufReader::new(File::open(&file).map_err(read)?).split(b'\n');
        let foreign = || RecordingError::Foreign { file: file.clone() };
        let first = match lines.next() {
            Some(line) => serde_json::from_slice(&line.map_err(read)?).map_err(|_| foreign())?,
            None => return Err(foreign()),
        };
        let mut recording = Recording::begin(&first).ok_or_else(foreign)?;
        let mut sums = Sums::default();
        let mut broken = None;
        for (nth, line) in lines.enumerate() {
            let line = line.map_err(read)?;
            if let Some(line) = broken {
                // What follows a line that makes no sense shows that it was not cut off.
                let file = file.clone();
                return Err(RecordingError::BadLine { file, line });
            }
            let value: Option<Value> = serde_json::from_slice(&line).ok();
            let entries = recording.entries.len();
            if !value.is_some_and(|value| recording.take(&value)) {
                broken = Some(nth + 2);
            } else if recording.edited.is_none() && recording.entries.len() > entries {
                let is_as_written = std::str::from_utf8(&line).is_ok_and(|line| sums.take(line));
                recording.edited = (!is_as_written).then_some(Edited {
                    entry: entries,
                    line: nth + 2,
                });
            }
        }
        recording.graph_text = fs::read_to_string(folder.join(GRAPH_FILE)).ok();
        Ok(recording)
    }

    fn begin(first: &Value) -> Option<Recording> {
        if first.get("windlass_recording")?.as_u64()? != VERSION {
            return None;
        }
        let texts = |name: &str| -> Option<Vec<String>> {
            let list = first.get(name)?.as_array()?.iter();
            list.map(|text| text.as_str().map(str::to_owned)).collect()
        };
        Some(Recording {
            header: Header {
                graph: first.get("graph")?.as_str()?.to_owned(),
                played_back: texts("played_back")?,
                doors: texts("doors")?,
                reentrant: texts("reentrant")?,
                on_clock: first.get("on_clock")?.as_bool()?,
                reset: first.get("reset")?.as_bool()?,
                restored: match first.get("restored")? {
                    Value::Null => None,
                    snapshot => Some(Snapshot::from_json(snapshot)?),
                },
            },
            lanes: texts("lanes")?,
            edges: texts("edges")?,
            entries: Vec::new(),
            end: None,
            edited: None,
            graph_text: None,
        })
    }

    /// Takes a line; gives whether it made sense.
    fn take(&mut self, line: &Value) -> bool {
        if self.end.is_some() {
            return false;
        }
        if let Some(reason) = line.get("end").and_then(Value::as_str) {
            let hash = line.get("hash").and_then(Value::as_str);
            self.end = StopReason::named(reason)
                .zip(hash)
                .map(|(reason, hash)| End {
                    reason,
                    hash: hash.to_owned(),
                });
            return self.end.is_some();
        }
        let entry = Entry::from_json(line);
        let is_there = entry.is_some();
        self.entries.extend(entry);
        is_there
    }

    /// The same with the places of this graph, which may not be the one that was recorded. What it does not have is
    /// at a place that there is not.
    pub(crate) fn fitted(&self, graph: &Graph) -> Recording {
        let edge = |edge: u32| {
            let id = self.edges.get(edge as usize);
            let found = graph.edges.iter().position(|edge| Some(&edge.id) == id);
            found.map_or(u32::MAX, |found| found as u32)
        };
        let lanes = |recorded: &[(u64, bool)]| -> Vec<(u64, bool)> {
            let of = |lane: &windlass_plan::model::Lane| {
                let found = self.lanes.iter().position(|id| *id == lane.id);
                found.and_then(|found| recorded.get(found).copied())
            };
            let lanes = graph.lanes.iter();
            lanes.map(|lane| of(lane).unwrap_or((0, true))).collect()
        };
        let mut fitted = self.clone();
        fitted.entries.truncate(self.whole_entries());
        if !self.is_complete() {
            // Loops beside the epochs say what they did when they come back, which is before the next epoch. Its
            // line is not there any more, so whether they do come back is not known, either.
            let is_beside = |entry: &Entry| match entry {
                Entry::Call(call) => call.transaction >> BESIDE_SHIFT != 0,
                Entry::Loop(stopped) => graph
                    .loops
                    .iter()
                    .any(|l| l.id == stopped.composite && l.policy.kind == LoopKind::AsyncTask),
                Entry::Epoch(_) => false,
            };
            while fitted.entries.last().is_some_and(is_beside) {
                fitted.entries.pop();
            }
        }
        for entry in &mut fitted.entries {
            match entry {
                Entry::Epoch(epoch) if !epoch.lanes.is_empty() => {
                    epoch.lanes = lanes(&epoch.lanes);
                }
                Entry::Call(call) => {
                    call.outputs.iter_mut().for_each(|o| o.edge = edge(o.edge));
                    call.refused
                        .iter_mut()
                        .for_each(|there| *there = edge(*there));
                }
                _ => {}
            }
        }
        fitted
    }

    /// What stands for a component that is not called in a replay.
    pub(crate) fn played_back(&self, component: &str) -> Option<PlayedBack> {
        let mut ids = self.header.played_back.iter();
        let is_played = ids.any(|id| id == component);
        is_played.then(|| PlayedBack::new(self, component))
    }

    /// The name of the graph.
    pub fn graph(&self) -> &str {
        &self.header.graph
    }

    /// The file that was run, if it was a file.
    pub fn graph_text(&self) -> Option<&str> {
        self.graph_text.as_deref()
    }

    /// Whether its end is there.
    pub fn is_complete(&self) -> bool {
        self.end.is_some()
    }

    /// How many epochs it has. If it is not complete, it breaks off in the last of them.
    pub fn epochs(&self) -> u64 {
        count_epochs(&self.entries)
    }

    /// How many epochs it has from their begin to their end: those that a replay compares.
    pub fn whole_epochs(&self) -> u64 {
        count_epochs(&self.entries[..self.whole_entries()])
    }

    /// How many entries are of whole epochs.
    fn whole_entries(&self) -> usize {
        let is_epoch = |entry: &Entry| matches!(entry, Entry::Epoch(_));
        match self.is_complete() {
            true => self.entries.len(),
            false => self.entries.iter().rposition(is_epoch).unwrap_or(0),
        }
    }
}

fn count_epochs(entries: &[Entry]) -> u64 {
    let epochs = entries.iter().filter(|e| matches!(e, Entry::Epoch(_)));
    epochs.count() as u64
}

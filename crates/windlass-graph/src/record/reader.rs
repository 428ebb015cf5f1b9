//! Reading a recording.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entry::Entry;
use super::playback::PlayedBack;
use super::writer::Header;
use super::{GRAPH_FILE, RUN_FILE, VERSION};
use crate::model::Graph;
use crate::run::{Snapshot, StopReason};

/// A recording of a run, from [`RunOptions::record`](crate::RunOptions).
#[derive(Debug, Clone)]
pub struct Recording {
    pub(crate) header: Header,
    pub(crate) lanes: Vec<String>,
    pub(crate) edges: Vec<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) end: Option<End>,
    graph_text: Option<String>,
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
        let mut lines = BufReader::new(File::open(&file).map_err(read)?).lines();
        let foreign = || RecordingError::Foreign { file: file.clone() };
        let first = match lines.next() {
            Some(Ok(line)) => serde_json::from_str(&line).map_err(|_| foreign())?,
            Some(Err(error)) if error.kind() != io::ErrorKind::InvalidData => {
                return Err(read(error));
            }
            _ => return Err(foreign()),
        };
        let mut recording = Recording::begin(&first).ok_or_else(foreign)?;
        let mut broken = None;
        for (nth, line) in lines.enumerate() {
            let line = line.map_err(read)?;
            if let Some(line) = broken {
                // What follows a line that makes no sense shows that it was not cut off.
                let file = file.clone();
                return Err(RecordingError::BadLine { file, line });
            }
            let value: Option<Value> = serde_json::from_str(&line).ok();
            if !value.is_some_and(|value| recording.take(&value)) {
                broken = Some(nth + 2);
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
            let of = |lane: &crate::model::Lane| {
                let found = self.lanes.iter().position(|id| *id == lane.id);
                found.and_then(|found| recorded.get(found).copied())
            };
            let lanes = graph.lanes.iter();
            lanes.map(|lane| of(lane).unwrap_or((0, true))).collect()
        };
        let mut fitted = self.clone();
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

    /// How many epochs it has.
    pub fn epochs(&self) -> u64 {
        let epochs = self.entries.iter().filter(|e| matches!(e, Entry::Epoch(_)));
        epochs.count() as u64
    }
}

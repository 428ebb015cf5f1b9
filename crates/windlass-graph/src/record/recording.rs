//! The recording of a run.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use windlass_plan::model::{Graph, LoopKind};
use windlass_record::{RecordingError, Writer};

use super::line::{GraphFormat, Header, LaneTurn, Line};
use super::playback::PlaybackComponent;
use super::{BESIDE_SHIFT, GRAPH_FILE, RUN_FILE};

/// A recording of a run, from [`RunOptions::record`](crate::RunOptions).
#[derive(Debug, Clone)]
pub struct Recording {
    pub(crate) content: windlass_record::Recording<GraphFormat>,
    graph_text: Option<String>,
}

/// Makes the folder of a recording and the files in it; those of an earlier recording are replaced.
pub(crate) fn create(
    folder: &Path,
    header: &Header,
    graph_text: Option<&str>,
    limit: u64,
) -> Result<Writer<GraphFormat>, String> {
    let prepared = fs::create_dir_all(folder).and_then(|()| match graph_text {
        Some(text) => fs::write(folder.join(GRAPH_FILE), text),
        // One of an earlier recording is of another graph.
        None => match fs::remove_file(folder.join(GRAPH_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
    });
    let failed = |error: String| format!("cannot record to {}: {error}", folder.display());
    prepared.map_err(|error| failed(error.to_string()))?;
    let file = folder.join(RUN_FILE);
    Writer::create(&file, header, limit).map_err(|error| failed(error.to_string()))
}

impl Recording {
    /// Reads the recording in a folder.
    ///
    /// # Errors
    /// If it cannot be read, is of another version, or breaks off.
    pub fn open(folder: &Path) -> Result<Recording, RecordingError> {
        let recording = Recording::open_part(folder)?;
        match recording.is_complete() {
            true => Ok(recording),
            false => Err(recording.content.truncated()),
        }
    }

    /// As [`open`](Recording::open), and takes what is there of a recording that breaks off.
    ///
    /// # Errors
    /// If it cannot be read, or is of another version.
    pub fn open_part(folder: &Path) -> Result<Recording, RecordingError> {
        Ok(Recording {
            content: windlass_record::Recording::open(&folder.join(RUN_FILE))?,
            graph_text: fs::read_to_string(folder.join(GRAPH_FILE)).ok(),
        })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.content.header
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.content.lines
    }

    /// Returns the same with the lanes of this graph, which may not be the one that was recorded,
    /// and without the epoch in which a recording breaks off.
    pub(crate) fn fitted(&self, graph: &Graph) -> Recording {
        let lanes = |recorded: &[LaneTurn]| -> Vec<LaneTurn> {
            let turn = |lane: &windlass_plan::model::Lane| {
                let found = recorded.iter().find(|turn| *turn.lane == *lane.id).cloned();
                found.unwrap_or_else(|| LaneTurn {
                    lane: Arc::from(lane.id.as_str()),
                    now: 0,
                    is_due: true,
                })
            };
            graph.lanes.iter().map(turn).collect()
        };
        let mut fitted = self.clone();
        let lines = &mut fitted.content.lines;
        lines.truncate(self.whole_lines());
        if !self.is_complete() {
            // Loops beside the epochs say what they did when they come back, which is before the
            // next epoch. Its line is not there any more, so whether they do come back is not
            // known, either.
            let is_beside = |line: &Line| match line {
                Line::Call(call) => call.transaction >> BESIDE_SHIFT != 0,
                Line::Loop(stopped) => graph
                    .loops
                    .iter()
                    .any(|l| l.id == stopped.composite && l.policy.kind == LoopKind::AsyncTask),
                Line::Epoch(_) => false,
            };
            while lines.last().is_some_and(is_beside) {
                lines.pop();
            }
        }
        for line in lines {
            if let Line::Epoch(epoch) = line
                && !epoch.lanes.is_empty()
            {
                epoch.lanes = lanes(&epoch.lanes);
            }
        }
        fitted
    }

    /// What stands for a component that is not called in a replay.
    pub(crate) fn played_back(&self, component: &str) -> Option<PlaybackComponent> {
        let mut ids = self.header().played_back.iter();
        let is_played = ids.any(|id| id == component);
        is_played.then(|| PlaybackComponent::new(self, component))
    }

    /// The name of the graph.
    pub fn graph(&self) -> &str {
        &self.header().graph
    }

    /// The file that was run, if it was a file.
    pub fn graph_text(&self) -> Option<&str> {
        self.graph_text.as_deref()
    }

    /// Whether its end is there.
    pub fn is_complete(&self) -> bool {
        self.content.is_complete()
    }

    /// How many epochs it has. If it is not complete, it breaks off in the last of them.
    pub fn epochs(&self) -> u64 {
        count_epochs(self.lines())
    }

    /// How many epochs it has from their begin to their end: those that a replay compares.
    pub fn whole_epochs(&self) -> u64 {
        count_epochs(&self.lines()[..self.whole_lines()])
    }

    /// How many lines are of whole epochs.
    fn whole_lines(&self) -> usize {
        let is_epoch = |line: &Line| matches!(line, Line::Epoch(_));
        match self.is_complete() {
            true => self.lines().len(),
            false => self.lines().iter().rposition(is_epoch).unwrap_or(0),
        }
    }
}

fn count_epochs(lines: &[Line]) -> u64 {
    let epochs = lines.iter().filter(|line| matches!(line, Line::Epoch(_)));
    epochs.count() as u64
}

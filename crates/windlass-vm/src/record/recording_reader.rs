//! A recording that is being replayed.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use windlass_record::{Comparison, Recording, RecordingError};
use windlass_value::Payload;

use super::line::{Header, Line, VmFormat};

/// A recording that is being replayed.
pub(crate) struct RecordingReader {
    pub(crate) header: Header,
    comparison: Comparison<VmFormat>,
    /// What to say at the end if the recording breaks off.
    truncated: Option<RecordingError>,
    /// What each guest was answered, step by step.
    answers: HashMap<u64, VecDeque<Vec<Payload>>>,
}

impl RecordingReader {
    pub(crate) fn open(path: &Path) -> Result<RecordingReader, RecordingError> {
        let mut recording: Recording<VmFormat> = Recording::open(path)?;
        let header = recording.header.clone();
        if !(1..=1024).contains(&header.workers) || header.slice_count == 0 {
            return Err(RecordingError::BadLine {
                file: path.to_owned(),
                line: 1,
                problem: "a VM has 1 to 1024 workers, and slices of at least one step".to_owned(),
            });
        }
        let truncated = (!recording.is_complete()).then(|| recording.truncated());
        let mut answers: HashMap<u64, VecDeque<Vec<Payload>>> = HashMap::new();
        for line in &recording.lines {
            if let Line::Result {
                task,
                answers: given,
                ..
            } = line
            {
                let given = given.iter().map(|answer| answer.0.clone()).collect();
                answers.entry(*task).or_default().push_back(given);
            }
        }
        if truncated.is_some() {
            // A turn of which the end is missing cannot be made again.
            let ends = recording
                .lines
                .iter()
                .rposition(|line| *line == Line::Turn {});
            recording.lines.truncate(ends.map_or(0, |place| place + 1));
        }
        Ok(RecordingReader {
            header,
            comparison: Comparison::new(&recording),
            truncated,
            answers,
        })
    }

    /// Returns the lines of the next turn, without its decisions; none at the end.
    pub(crate) fn turn(&self) -> Option<&[Line]> {
        let rest = self.comparison.rest();
        let length = rest.iter().position(|line| *line == Line::Turn {})?;
        Some(&rest[..length])
    }

    /// Compares what happened with the next line.
    pub(crate) fn check(&mut self, happened: &Line) -> Result<(), RecordingError> {
        let checked = self.comparison.check(happened);
        checked.map_err(RecordingError::Diverged)
    }

    /// Returns the number of the line that comes next, from 1; the header is line 1.
    pub(crate) fn line(&self) -> usize {
        self.comparison.line()
    }

    /// Returns how many lines there are.
    pub(crate) fn lines(&self) -> usize {
        self.comparison.lines()
    }

    /// Returns how the recording ends, once there is no turn any more.
    pub(crate) fn end(&self) -> Result<(), RecordingError> {
        self.truncated.clone().map_or(Ok(()), Err)
    }

    /// Returns what this guest was answered in its next step.
    pub(crate) fn answers(&mut self, task: u64) -> VecDeque<Payload> {
        let steps = self.answers.get_mut(&task);
        let answers = steps.and_then(VecDeque::pop_front);
        answers.unwrap_or_default().into()
    }
}

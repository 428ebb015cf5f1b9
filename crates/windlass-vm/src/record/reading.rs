//! Reading a recording.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use windlass_process::Payload;

use super::line::Line;
use super::writing::failed;
use crate::error::RecordingError;

/// The version of what is written.
pub(super) const VERSION: u64 = 1;

/// A recording that is being replayed.
pub(crate) struct Reading {
    pub(crate) header: Header,
    lines: Vec<Line>,
    next: usize,
    /// It breaks off.
    truncated: bool,
    /// What each guest was answered, step by step.
    answers: HashMap<u64, VecDeque<Vec<Payload>>>,
}

/// What the first line says.
pub(crate) struct Header {
    pub(crate) workers: usize,
    pub(crate) slice_count: u64,
}

impl Reading {
    pub(crate) fn open(path: PathBuf) -> Result<Reading, RecordingError> {
        let text = fs::read(&path).map_err(|error| failed(&path, &error))?;
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().peekable();
        let first = lines.next().unwrap_or_default();
        let header = header(first).ok_or_else(|| RecordingError::Foreign {
            found: first.chars().take(60).collect(),
        })?;
        let mut reading = Reading {
            header,
            lines: Vec::new(),
            next: 0,
            truncated: true,
            answers: HashMap::new(),
        };
        let mut number = 1;
        while let Some(text) = lines.next() {
            number += 1;
            let line = match Line::of_text(text) {
                Ok(line) => line,
                // The last one may be half of one.
                Err(_) if lines.peek().is_none() => break,
                Err(problem) => {
                    return Err(RecordingError::BadLine {
                        line: number,
                        problem,
                    });
                }
            };
            reading.truncated = line != Line::End;
            if let Line::Result { task, answers, .. } = &line {
                let steps = reading.answers.entry(*task).or_default();
                steps.push_back(answers.clone());
            }
            reading.lines.push(line);
        }
        reading.drop_half_a_turn();
        Ok(reading)
    }

    /// A turn of which the end is missing cannot be made again.
    fn drop_half_a_turn(&mut self) {
        if self.truncated {
            let ends = self.lines.iter().rposition(|line| *line == Line::Turn);
            self.lines.truncate(ends.map_or(0, |place| place + 1));
        }
    }

    /// The lines of the next turn, without its decisions; None at the end.
    pub(crate) fn turn(&self) -> Option<&[Line]> {
        let rest = &self.lines[self.next..];
        let length = rest.iter().position(|line| *line == Line::Turn)?;
        Some(&rest[..length])
    }

    /// What comes next has happened, and is this: an error if it is something else.
    pub(crate) fn check(&mut self, happened: &Line) -> Result<(), RecordingError> {
        let text = |line: &Line| line.to_text().unwrap_or_else(|_| format!("{line:?}"));
        match self.lines.get(self.next) {
            // The texts are the same also where values are not: a number that is none differs from itself.
            Some(recorded) if recorded == happened || text(recorded) == text(happened) => {
                self.next += 1;
                Ok(())
            }
            recorded => Err(RecordingError::Diverged {
                line: self.line(),
                recorded: recorded.map_or("nothing more".to_owned(), text),
                happened: text(happened),
            }),
        }
    }

    /// The number of the line that comes next, from 1; the first is the header.
    pub(crate) fn line(&self) -> usize {
        self.next + 2
    }

    /// How many lines there are.
    pub(crate) fn lines(&self) -> usize {
        self.lines.len() + 1
    }

    /// How it ends, once there is no turn any more.
    pub(crate) fn end(&self) -> Result<(), RecordingError> {
        match self.truncated {
            true => Err(RecordingError::Truncated { line: self.lines() }),
            false => Ok(()),
        }
    }

    /// What this guest was answered in its next step.
    pub(crate) fn answers(&mut self, task: u64) -> VecDeque<Payload> {
        let steps = self.answers.get_mut(&task);
        let answers = steps.and_then(VecDeque::pop_front);
        answers.unwrap_or_default().into()
    }
}

fn header(text: &str) -> Option<Header> {
    let json: Value = serde_json::from_str(text).ok()?;
    if json["windlass_vm_recording"].as_u64() != Some(VERSION) {
        return None;
    }
    Some(Header {
        workers: usize::try_from(json["workers"].as_u64()?)
            .ok()
            .filter(|workers| (1..=1024).contains(workers))?,
        slice_count: json["slice_count"].as_u64().filter(|count| *count > 0)?,
    })
}

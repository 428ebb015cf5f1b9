//! The lines of a VM's recording.

use serde::{Deserialize, Serialize};
use windlass_actor::Pid;
use windlass_record::Format;
use windlass_value::Payload;
use windlass_value::recorded;

use super::ending::{recorded_ending, recorded_pid};
use crate::guest::Ending;

/// The format of recordings of VMs.
#[derive(Debug, Clone)]
pub(crate) struct VmFormat;

impl Format for VmFormat {
    const NAME: &'static str = "vm";
    const VERSION: u32 = 3;
    type Header = Header;
    type Line = Line;
    type End = End;

    fn origin(line: &Line) -> &'static str {
        match line {
            Line::Io { .. } => "what blocking work gave",
            Line::Input { .. } => "a message",
            _ => "what a guest was answered",
        }
    }
}

/// What the first line says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) workers: usize,
    pub(crate) slice_count: u64,
}

/// What the last line says: nothing but that it is the last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct End {}

/// One line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// A guest did something to others, inside a step.
    Op { task: u64, name: String },
    /// A step has ended.
    Result {
        task: u64,
        step: String,
        spent: u64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<RecordedPayload>,
        /// What the guest did in it that others can see: messages, and what it printed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        did: Vec<String>,
    },
    /// A guest was started from outside.
    Inject {
        task: u64,
        #[serde(with = "recorded_pid")]
        pid: Pid,
    },
    /// Blocking work was done.
    Io {
        task: u64,
        wait: u64,
        #[serde(with = "recorded_ending")]
        ending: Ending,
    },
    /// A timer was due.
    Timer { task: u64, wait: u64 },
    /// Something came to the process of a guest.
    Input {
        task: u64,
        wait: u64,
        #[serde(with = "recorded_ending")]
        ending: Ending,
    },
    /// A guest was cancelled.
    Cancel { task: u64, reason: String },
    /// A guest was ended.
    Kill { task: u64 },
    /// The VM was paused, or goes on.
    Pause { on: bool },
    /// A decision: this guest runs next, in this slot.
    Dispatch { task: u64, slot: usize },
    /// A turn of the reactor ends.
    Turn {},
}

/// A payload in its recorded form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct RecordedPayload(#[serde(with = "recorded")] pub(crate) Payload);

/// The source of the event of a line in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The guest does it again.
    Guest(u64),
    /// The code that starts guests does it again.
    Outside,
    /// The recording has it.
    File,
    /// The reactor decides it again.
    Decision,
}

impl Line {
    pub(crate) fn source(&self) -> Source {
        match self {
            Line::Op { task, .. } | Line::Result { task, .. } => Source::Guest(*task),
            Line::Inject { .. } => Source::Outside,
            Line::Io { .. }
            | Line::Timer { .. }
            | Line::Input { .. }
            | Line::Cancel { .. }
            | Line::Kill { .. }
            | Line::Pause { .. } => Source::File,
            Line::Dispatch { .. } | Line::Turn {} => Source::Decision,
        }
    }
}

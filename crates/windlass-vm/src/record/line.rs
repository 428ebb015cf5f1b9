//! The lines of a recording.

use serde_json::{Value, json};
use windlass_process::{Payload, Pid};

use super::value::{Bad, Opaque, of_ending, of_payload, to_ending, to_payload, to_pid};
use crate::guest::Ending;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// A guest did something to others, inside a step.
    Op { task: u64, name: String },
    /// A step has ended.
    Result {
        task: u64,
        step: String,
        spent: u64,
        answers: Vec<Payload>,
    },
    /// A guest was started from outside.
    Inject { task: u64, pid: Pid },
    /// Blocking work was done.
    Io {
        task: u64,
        wait: u64,
        ending: Ending,
    },
    /// A timer was due.
    Timer { task: u64, wait: u64 },
    /// Something came to the process of a guest.
    Input {
        task: u64,
        wait: u64,
        ending: Ending,
    },
    /// A guest was told to stop.
    Cancel { task: u64, reason: String },
    /// A guest was ended.
    Kill { task: u64 },
    /// Somebody wants nothing to run, or nobody does any more.
    Pause { on: bool },
    /// A decision: this guest runs next, in this slot.
    Dispatch { task: u64, slot: usize },
    /// A turn of the reactor ends.
    Turn,
    /// The recording ends.
    End,
}

/// Where what a line tells of comes from in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The guest does it again.
    Guest(u64),
    /// Whoever starts guests does it again.
    Outside,
    /// The recording.
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
            Line::Dispatch { .. } | Line::Turn | Line::End => Source::Decision,
        }
    }

    pub(super) fn to_text(&self) -> Result<String, Opaque> {
        let json = match self {
            Line::Op { task, name } => json!({"op": name, "task": task}),
            Line::Result {
                task,
                step,
                spent,
                answers,
            } => {
                let answers: Result<Vec<_>, _> = answers.iter().map(of_payload).collect();
                json!({"step": step, "task": task, "spent": spent, "answers": answers?})
            }
            Line::Inject { task, pid } => json!({"inject": task, "pid": pid.to_string()}),
            Line::Io { task, wait, ending } => {
                json!({"io": of_ending(ending)?, "task": task, "wait": wait})
            }
            Line::Timer { task, wait } => json!({"timer": task, "wait": wait}),
            Line::Input { task, wait, ending } => {
                json!({"input": of_ending(ending)?, "task": task, "wait": wait})
            }
            Line::Cancel { task, reason } => json!({"cancel": task, "reason": reason}),
            Line::Kill { task } => json!({"kill": task}),
            Line::Pause { on } => json!({"pause": on}),
            Line::Dispatch { task, slot } => json!({"dispatch": task, "slot": slot}),
            Line::Turn => json!({"turn": true}),
            Line::End => json!({"end": true}),
        };
        Ok(json.to_string())
    }

    pub(super) fn of_text(text: &str) -> Result<Line, Bad> {
        let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let number = |key: &str| json[key].as_u64().ok_or(format!("no {key}"));
        let text = |key: &str| {
            let text = json[key].as_str().map(str::to_owned);
            text.ok_or(format!("no {key}"))
        };
        let has = |key: &str| json.get(key).is_some();
        if has("op") {
            let (task, name) = (number("task")?, text("op")?);
            return Ok(Line::Op { task, name });
        }
        if has("step") {
            let answers = json["answers"].as_array().ok_or("no answers")?;
            return Ok(Line::Result {
                task: number("task")?,
                step: text("step")?,
                spent: number("spent")?,
                answers: answers.iter().map(to_payload).collect::<Result<_, _>>()?,
            });
        }
        if has("inject") {
            let (task, pid) = (number("inject")?, to_pid(&json["pid"])?);
            return Ok(Line::Inject { task, pid });
        }
        if has("io") {
            return Ok(Line::Io {
                task: number("task")?,
                wait: number("wait")?,
                ending: to_ending(&json["io"])?,
            });
        }
        if has("timer") {
            let (task, wait) = (number("timer")?, number("wait")?);
            return Ok(Line::Timer { task, wait });
        }
        if has("input") {
            return Ok(Line::Input {
                task: number("task")?,
                wait: number("wait")?,
                ending: to_ending(&json["input"])?,
            });
        }
        if has("cancel") {
            let (task, reason) = (number("cancel")?, text("reason")?);
            return Ok(Line::Cancel { task, reason });
        }
        if has("kill") {
            let task = number("kill")?;
            return Ok(Line::Kill { task });
        }
        if has("pause") {
            let on = json["pause"].as_bool().ok_or("no pause")?;
            return Ok(Line::Pause { on });
        }
        if has("dispatch") {
            let (task, slot) = (number("dispatch")?, number("slot")? as usize);
            return Ok(Line::Dispatch { task, slot });
        }
        match (has("turn"), has("end")) {
            (true, _) => Ok(Line::Turn),
            (_, true) => Ok(Line::End),
            _ => Err("it says nothing that a recording says".to_owned()),
        }
    }
}

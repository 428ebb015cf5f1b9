//! What a guest was answered and what it did in one step.

use std::collections::VecDeque;

use windlass_record::Digest;
use windlass_value::Payload;

/// Bytes of a text or value that a recording repeats; the rest counts by its hash.
const SHOWN: usize = 64;

/// The answers to the questions of a guest in one step, and what it did that others can see.
#[derive(Debug, Default)]
pub(crate) enum AnswerLog {
    /// Neither is recorded.
    #[default]
    Live,
    /// Both are recorded.
    Writing {
        answers: Vec<Payload>,
        did: Vec<String>,
    },
    /// Answers are read from a recording, and recorded again.
    Reading {
        answers: VecDeque<Payload>,
        given: Vec<Payload>,
        did: Vec<String>,
        /// The guest asked more often than in the recording.
        short: bool,
    },
}

impl AnswerLog {
    pub(crate) fn answer(&mut self, ask: impl FnOnce() -> Payload) -> Payload {
        match self {
            AnswerLog::Live => ask(),
            AnswerLog::Writing { answers, .. } => {
                let answer = ask();
                answers.push(answer.clone());
                answer
            }
            AnswerLog::Reading {
                answers,
                given,
                short,
                ..
            } => match answers.pop_front() {
                Some(answer) => {
                    given.push(answer.clone());
                    answer
                }
                None => {
                    *short = true;
                    Payload::Nil
                }
            },
        }
    }

    /// Notes what the guest did, where that is recorded or compared.
    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        match self {
            AnswerLog::Live => {}
            AnswerLog::Writing { did, .. } | AnswerLog::Reading { did, .. } => did.push(what()),
        }
    }
}

/// Returns a text as recordings show it: the beginning of a long one, with the hash of the whole.
pub(crate) fn shown(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let mut digest = Digest::default();
    digest.bytes(text.as_bytes());
    let end = text.floor_char_boundary(SHOWN);
    format!("{}.. #{}", &text[..end], digest.text())
}

/// Returns a value as recordings show it. A value of Rust has no form of its own: its type counts.
pub(crate) fn shown_value(value: &Payload) -> String {
    match value.to_recorded() {
        Ok(json) => shown(&json.to_string()),
        Err(_) => format!("a value with {}", value.unrecorded().unwrap_or("no form")),
    }
}

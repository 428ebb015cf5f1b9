//! Recordings: every decision of the reactor and everything that came from outside, a line each.

mod ending;
mod line;
mod reading;

pub(crate) use self::line::{End, Header, Line, RecordedPayload, Source};
pub(crate) use self::reading::Reading;

/// A recording that is being written.
pub(crate) type Writer = windlass_record::Writer<line::VmFormat>;

use std::collections::VecDeque;

use windlass_actor::Payload;

/// What a guest was answered in a step.
#[derive(Debug, Default)]
pub(crate) enum Script {
    /// Nobody writes it down.
    #[default]
    Live,
    /// It is written down.
    Writing(Vec<Payload>),
    /// It is read; what has been read is written down, too.
    Reading {
        answers: VecDeque<Payload>,
        given: Vec<Payload>,
        /// It asked more often than then.
        short: bool,
    },
}

impl Script {
    pub(crate) fn answer(&mut self, ask: impl FnOnce() -> Payload) -> Payload {
        match self {
            Script::Live => ask(),
            Script::Writing(answers) => {
                let answer = ask();
                answers.push(answer.clone());
                answer
            }
            Script::Reading {
                answers,
                given,
                short,
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
}

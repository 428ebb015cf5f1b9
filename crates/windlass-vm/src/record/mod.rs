//! Recordings: every decision of the reactor and everything that came from outside, a line each.

mod line;
mod reading;
mod value;
mod writing;

pub(crate) use self::line::{Line, Source};
pub(crate) use self::reading::Reading;
pub(crate) use self::writing::Writing;

use std::collections::VecDeque;

use windlass_process::Payload;

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

//! `windlass doctor`: what this machine grants to lanes, and how to get the rest.
//!
//! What can be tried is tried: a thread asks for it, and what the system then has is read back.

mod machine;
mod trials;

use serde::Serialize;

use crate::args::{Doctor, Format};
use crate::outcome::{Error, Outcome, Verdict};
use crate::terminal::Terminal;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// What was looked at.
    pub(crate) name: &'static str,
    pub(crate) state: State,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it; empty if there is nothing to do.
    pub(crate) advice: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It is there, without a limit that matters.
    Granted,
    /// It is there, with a limit.
    Limited,
    /// It is not there.
    Refused,
    /// The system does not say.
    Unknown,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Granted => "granted",
            State::Limited => "limited",
            State::Refused => "refused",
            State::Unknown => "unknown",
        }
    }
}

impl Finding {
    pub(crate) fn new(name: &'static str, state: State, found: impl Into<String>) -> Finding {
        Finding {
            name,
            state,
            found: found.into(),
            advice: String::new(),
        }
    }

    pub(crate) fn advice(mut self, advice: impl Into<String>) -> Finding {
        self.advice = advice.into();
        self
    }
}

/// The document that is printed.
#[derive(Serialize)]
struct Document<'a> {
    doctor_schema_version: &'static str,
    findings: &'a [Finding],
}

pub(crate) fn run(args: &Doctor, terminal: &Terminal) -> Outcome {
    let runtime = windlass::Runtime::builder()
        .workers(1)
        .build()
        .map_err(Error::Runtime)?;
    let mut findings = machine::findings();
    findings.extend(trials::findings(runtime.handle()));
    match args.output.format {
        Format::Text => terminal.print(&to_text(&findings))?,
        Format::Json => terminal.print_json(&Document {
            doctor_schema_version: "1",
            findings: &findings,
        })?,
    }
    // What a machine does not grant is no fault.
    Ok(Verdict::Fine)
}

fn to_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let (name, state) = (finding.name, finding.state.name());
        text.push_str(&format!("{name:<15} {state:<8} {}\n", finding.found));
        if !finding.advice.is_empty() {
            text.push_str(&format!("{:25}{}\n", "", finding.advice));
        }
    }
    text
}

//! Ctrl-C and SIGTERM, for scripts and graphs alike.
//!
//! The first signal asks for an end, and says what is waited for and what the second does. The
//! second, and the end of `--stop-ms`, end the program without waiting. A signal right after the
//! first belongs to it: `timeout(1)` signals its child and then the child's group. The signals are
//! awaited on the main thread and not in a task: the workers may all be inside code that does not
//! return.

use std::time::Duration;

use windlass::signal::unix::{Signal, SignalKind, signal};
use windlass::time::Instant;

use crate::outcome::{Error, INTERRUPTED, NOT_STOPPED};
use crate::terminal::Terminal;

/// How long after the first signal another one counts as the same request.
const ONE_REQUEST: Duration = Duration::from_millis(100);

/// The two signals that ask for an end.
pub(crate) struct StopSignals {
    interrupts: Signal,
    requests: Signal,
    /// When the first one came.
    first: Option<Instant>,
}

impl StopSignals {
    pub(crate) fn listen() -> Result<StopSignals, Error> {
        Ok(StopSignals {
            interrupts: signal(SignalKind::interrupt()).map_err(Error::Signals)?,
            requests: signal(SignalKind::terminate()).map_err(Error::Signals)?,
            first: None,
        })
    }

    /// The next request to end, by either signal.
    pub(crate) async fn next(&mut self) {
        loop {
            windlass::select! {
                _ = self.interrupts.recv() => {}
                _ = self.requests.recv() => {}
            }
            match self.first {
                None => {
                    self.first = Some(Instant::now());
                    return;
                }
                Some(first) if first.elapsed() >= ONE_REQUEST => return,
                Some(_) => {}
            }
        }
    }
}

/// Says what the first signal does: what is stopping, and what it waits for.
pub(crate) fn tell_stopping(terminal: &Terminal, who: &str, waits_for: &str, within: Duration) {
    let within = within.as_millis();
    terminal.note(&format!(
        "note: stopping {who}: waiting for {waits_for}, at most {within} ms; a second Ctrl-C or SIGTERM ends it at once"
    ));
}

/// The second signal: ends the program.
pub(crate) fn leave_interrupted(terminal: &Terminal, who: &str) -> ! {
    terminal.note(&format!(
        "note: {who} was ended at once, by a second signal"
    ));
    leave(INTERRUPTED)
}

/// Something did not stop in time: names it, and ends the program without it.
pub(crate) fn leave_not_stopped(terminal: &Terminal, who: &str, why: &str, within: Duration) -> ! {
    let within = within.as_millis();
    terminal.note(&format!(
        "error: {who} did not stop within {within} ms: {why}"
    ));
    leave(NOT_STOPPED)
}

/// Ends the program without waiting for anything. Commands end with it, and what they have started.
fn leave(code: u8) -> ! {
    windlass::process::kill_bound();
    std::process::exit(i32::from(code))
}

/// A list for people: `component a`, or `component a, component b and component c`.
pub(crate) fn listed(what: &str, names: &[String]) -> String {
    let named: Vec<String> = names.iter().map(|name| format!("{what} {name}")).collect();
    match &named[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[test]
fn lists_are_for_people() {
    let names = |names: &[&str]| -> Vec<String> { names.iter().map(|&n| n.to_owned()).collect() };
    assert_eq!(listed("component", &names(&["a"])), "component a");
    assert_eq!(
        listed("component", &names(&["a", "b", "c"])),
        "component a, component b and component c"
    );
}

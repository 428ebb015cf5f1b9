//! What the scheduler does, as text: `WINDLASS_DEBUG=1` in the environment.
//!
//! Every runtime that is built then records everything, and each worker writes its events between
//! polls and before it sleeps: as `tracing` events of the target `windlass::sched`, or, where
//! there is no subscriber, as lines on the standard error.

use std::io::{self, Write};

use windlass_core::observe::Event;
use windlass_core::sched::pool::EventHook;
use windlass_core::sync::Arc;

/// The listener, if the environment asks for one.
pub(crate) fn from_environment() -> Option<EventHook> {
    let asked = std::env::var_os("WINDLASS_DEBUG").is_some_and(|value| value == "1");
    asked.then(|| Arc::new(write_events) as EventHook)
}

fn write_events(events: &[Event], lost: u64) {
    if tracing::enabled!(target: "windlass::sched", tracing::Level::DEBUG) {
        write_to_tracing(events, lost);
    } else {
        // A closed standard error is no reason to stop.
        let _ = write_lines(events, lost, &mut io::stderr().lock());
    }
}

fn write_to_tracing(events: &[Event], lost: u64) {
    if lost > 0 {
        tracing::debug!(target: "windlass::sched", lost, "events were overwritten");
    }
    for event in events {
        let task = event.task().map(tracing::field::display);
        tracing::debug!(
            target: "windlass::sched",
            kind = ?event.kind,
            at = event.at,
            worker = event.worker,
            argument = event.argument,
            task,
        );
    }
}

fn write_lines(events: &[Event], lost: u64, out: &mut impl Write) -> io::Result<()> {
    let mut lines = Vec::new();
    if lost > 0 {
        writeln!(lines, "windlass: {lost} events were overwritten")?;
    }
    for event in events {
        let (seconds, nanos) = (event.at / 1_000_000_000, event.at % 1_000_000_000);
        let kind = format!("{:?}", event.kind);
        write!(
            lines,
            "windlass: {seconds:>5}.{nanos:09} worker {} {kind:<8}",
            event.worker
        )?;
        match event.task() {
            Some(task) => writeln!(lines, " {task}")?,
            None => writeln!(lines, " {}", event.argument)?,
        }
    }
    out.write_all(&lines)
}

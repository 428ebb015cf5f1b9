//! `windlass graph trace`.

use std::fmt::Write;
use std::io;

use windlass::graph::run::{Trace, TraceEvent};

use super::execution::{Execution, tell_errors};
use crate::args::{self, TraceFormat};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &args::Trace, terminal: &Terminal) -> Outcome {
    let format = args.format.into();
    let Some(execution) = Execution::prepare(&args.graph.source, &args.types, format, terminal)?
    else {
        return Ok(Verdict::Bad);
    };
    let result = execution.run(args.graph.bounds.options().traced(), terminal)?;
    tell_errors(&result, terminal);
    let trace = &result.trace;
    if trace.dropped > 0 {
        let kept = trace.events.len();
        terminal.note(&format!(
            "note: the trace is full: {kept} events are kept, {} are not",
            trace.dropped
        ));
    }
    terminal.write_to(args.output.file.as_deref(), |out| match args.format {
        TraceFormat::Text => write_text(trace, out),
        TraceFormat::Json => trace.write_json(out),
        TraceFormat::Chrome => trace.write_chrome(out),
    })?;
    Ok(Verdict::of_run(&result))
}

fn write_text(trace: &Trace, out: &mut dyn io::Write) -> io::Result<()> {
    let names = trace.events.iter().map(|event| event.name.name().len());
    let width = names.max().unwrap_or(0);
    for event in &trace.events {
        let micros = event.start_offset_ns as f64 / 1e3;
        let name = event.name.name();
        let line = format!("{micros:>12.3} us  {name:<width$}  {}", details(event));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// The ids of an event: only those it has.
fn details(event: &TraceEvent) -> String {
    let mut text = String::new();
    let ids = [
        ("component", &event.component_id),
        ("channel", &event.channel_id),
        ("lane", &event.lane),
        ("correlation", &event.correlation_id),
        ("causation", &event.causation_id),
    ];
    for (name, id) in ids.into_iter().filter(|(_, id)| !id.is_empty()) {
        let _ = write!(text, "{name}={id} ");
    }
    if let Some(worker) = event.worker_id {
        let _ = write!(text, "worker={worker} ");
    }
    let numbers = [
        ("epoch", event.epoch_id),
        ("transaction", event.transaction_id),
    ];
    for (name, number) in numbers.into_iter().filter(|(_, number)| *number > 0) {
        let _ = write!(text, "{name}={number} ");
    }
    if event.name.is_span() {
        let _ = write!(text, "duration={:.3}us ", event.duration_ns as f64 / 1e3);
    }
    for (name, value) in &event.attributes {
        let _ = write!(text, "{name}={value} ");
    }
    text
}

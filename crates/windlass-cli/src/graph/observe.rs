//! `windlass graph observe`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use windlass::graph::observe::{
    AssertionFailure, Assertions, Events, Filter, ObserveOptions, Observer, observe,
};
use windlass::graph::{RunResult, StopReason};

use super::execution::{self, ErrorDocument, Execution, HealthDocument};
use crate::args::{Format, Observe, ObserveFormat};
use crate::outcome::{Error, Outcome, Verdict};
use crate::terminal::Terminal;

/// The file of events beside a recording.
const EVENTS_FILE: &str = "events.ndjson";

pub(crate) fn run(args: &Observe, terminal: &Terminal) -> Outcome {
    let format = match args.format {
        ObserveFormat::Ndjson => Format::Text,
        ObserveFormat::JsonSummary => Format::Json,
    };
    let assertions = match &args.assert {
        Some(file) => match assertions(file, terminal)? {
            Some(assertions) => assertions,
            None => return Ok(Verdict::Invalid),
        },
        None => Assertions::default(),
    };
    let Some(execution) = Execution::prepare(&args.graph.source, &args.types, format, terminal)?
    else {
        return Ok(Verdict::Invalid);
    };
    let (observer, events) = observe(ObserveOptions {
        level: args.observe_level.level(),
        interval: Duration::from_millis(args.interval_ms),
        capacity: args.event_buffer_capacity,
        filter: Filter {
            include: args.include.clone(),
            exclude: args.exclude.clone(),
            sample: args.sample,
        },
        assertions,
    });
    let collector = Collector::new(args)?;
    let mut options = args.graph.bounds.options();
    options.observer = Some(observer.clone());
    let (result, collected) = execution.observe(options, terminal, events, collector)?;
    let seen = ObservedRun {
        execution: &execution,
        result: &result,
        observer: &observer,
        collected: collected.as_ref().err(),
    };
    if args.format == ObserveFormat::JsonSummary {
        terminal.print_json(&seen.document())?;
    }
    seen.print(terminal);
    Ok(seen.verdict(args))
}

/// The assertions of a file; none if they make no sense, which has been said.
fn assertions(file: &Path, terminal: &Terminal) -> Result<Option<Assertions>, Error> {
    let text = fs::read_to_string(file).map_err(|source| Error::Read {
        file: file.display().to_string(),
        source,
    })?;
    match Assertions::parse(&text) {
        Ok(assertions) => Ok(Some(assertions)),
        Err(error) => {
            terminal.note(&format!("error: {}: {error}", file.display()));
            Ok(None)
        }
    }
}

/// Where events go.
pub(crate) struct Collector {
    prints: bool,
    file: Option<BufWriter<File>>,
}

impl Collector {
    fn new(args: &Observe) -> Result<Collector, Error> {
        let open = |folder: &Path| {
            fs::create_dir_all(folder)?;
            File::create(folder.join(EVENTS_FILE))
        };
        let file = match &args.graph.bounds.record {
            Some(folder) => Some(open(folder).map_err(|source| Error::Write {
                file: folder.join(EVENTS_FILE).display().to_string(),
                source,
            })?),
            None => None,
        };
        Ok(Collector {
            prints: args.format == ObserveFormat::Ndjson,
            file: file.map(BufWriter::new),
        })
    }

    /// Collects until the run is over. Blocks.
    pub(crate) fn collect(mut self, events: &Events) -> io::Result<()> {
        loop {
            let event = match events.try_next() {
                Some(event) => event,
                None => {
                    // What has come is in the file, however the program ends.
                    if let Some(file) = &mut self.file {
                        file.flush()?;
                    }
                    match windlass::block_on(events.next()) {
                        Some(event) => event,
                        None => break,
                    }
                }
            };
            let line = format!("{}\n", event.to_json());
            if self.prints {
                // Each line at once: a person or a program follows the output.
                let mut out = io::stdout().lock();
                match out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
                    // The reader of the output has closed it.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.prints = false,
                    written => written?,
                }
            }
            if let Some(file) = &mut self.file {
                file.write_all(line.as_bytes())?;
            }
        }
        match &mut self.file {
            Some(file) => file.flush(),
            None => Ok(()),
        }
    }
}

/// What came of it.
struct ObservedRun<'a> {
    execution: &'a Execution,
    result: &'a RunResult,
    observer: &'a Observer,
    /// Why events were not collected.
    collected: Option<&'a io::Error>,
}

impl ObservedRun<'_> {
    fn verdict(&self, args: &Observe) -> Verdict {
        let dropped = self.observer.counts().dropped > 0 && args.fail_on_observer_drop;
        if !self.observer.failures().is_empty() {
            Verdict::AssertionFailed
        } else if !self.result.is_ok() || !self.result.forced.is_empty() {
            Verdict::of_run(self.result)
        } else if self.collected.is_some() || dropped {
            Verdict::CollectorFailed
        } else {
            Verdict::Fine
        }
    }

    fn print(&self, terminal: &Terminal) {
        for failure in self.observer.failures() {
            terminal.note(&format!("assertion failed: {failure}"));
        }
        let dropped = self.observer.counts().dropped;
        if dropped > 0 {
            terminal.note(&format!(
                "note: {dropped} events were dropped: raise --event-buffer-capacity, or observe less"
            ));
        }
        if let Some(error) = self.collected {
            terminal.note(&format!("error: events could not be written: {error}"));
        }
        execution::tell_errors(self.result, terminal);
    }

    fn document(&self) -> Document<'_> {
        let (result, counts) = (self.result, self.observer.counts());
        let failures = self.observer.failures();
        Document {
            ok: result.is_ok() && failures.is_empty() && self.collected.is_none(),
            graph: self.execution.name(),
            stop_reason: result.stop_reason,
            epochs: result.epochs,
            ticks: result.ticks,
            events: counts.events,
            dropped: counts.dropped,
            assertion_failures: failures,
            errors: ErrorDocument::of(result),
            health_events: HealthDocument::of(result),
        }
    }
}

/// The document that is printed.
#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    graph: &'a str,
    stop_reason: StopReason,
    epochs: u64,
    ticks: u64,
    events: u64,
    dropped: u64,
    assertion_failures: Vec<AssertionFailure>,
    errors: Vec<ErrorDocument<'a>>,
    health_events: Vec<HealthDocument<'a>>,
}

//! A run as the commands do it: it can be stopped by Ctrl-C, and it shows how far it is.

use std::collections::BTreeSet;
use std::io;
use std::pin::pin;

use serde::Serialize;
use windlass::Runtime;
use windlass::graph::check::Level;
use windlass::graph::component::Registry;
use windlass::graph::model::Graph;
use windlass::graph::observe::Events;
use windlass::graph::record::{Recording, Replayed};
use windlass::graph::run::{Control, ErrorCode, HealthEvent, HealthKind, RuntimeError};
use windlass::graph::{Prepared, RunOptions, RunResult};
use windlass::time::sleep;

use super::observe::Collector;
use super::progress;
use super::registry::registry;
use super::source::{self, LoadedFile};
use crate::args::{Format, Source, Types};
use crate::outcome::Error;
use crate::stopping::{StopSignals, leave_interrupted, leave_not_stopped, listed, tell_stopping};
use crate::terminal::Terminal;

/// A graph that can be run, and what runs it.
pub(crate) struct Execution {
    pub(crate) prepared: Prepared,
    pub(crate) registry: Registry,
    /// The types that stubs stand in for.
    pub(crate) stubs: Vec<String>,
    /// The file, to be kept with a recording.
    text: String,
    runtime: Runtime,
}

impl Execution {
    /// Loads and checks a file; if it cannot be run, says why, and gives nothing.
    pub(crate) fn prepare(
        source: &Source,
        types: &Types,
        format: Format,
        terminal: &Terminal,
    ) -> Result<Option<Execution>, Error> {
        let opened = source::load(&source.file, &source.limits.limits())?;
        Execution::of(opened, types, format, terminal)
    }

    /// As `prepare`, for a file that was loaded.
    pub(crate) fn of(
        mut opened: LoadedFile,
        types: &Types,
        format: Format,
        terminal: &Terminal,
    ) -> Result<Option<Execution>, Error> {
        let mut registry = registry();
        let level = match types.stub_unknown {
            true => Level::Schema,
            false => Level::Registry,
        };
        opened.check(&registry, level);
        let unknown = unknown_types(opened.graph.as_ref(), &registry);
        let names = unknown.join(", ");
        let Some(valid) = opened.into_valid(format, terminal)? else {
            if !unknown.is_empty() && !types.stub_unknown {
                terminal.note(&format!("note: --stub-unknown puts stubs in for: {names}"));
            }
            return Ok(None);
        };
        if !unknown.is_empty() {
            terminal.note(&format!("note: running with stubs for: {names}"));
        }
        for type_name in &unknown {
            registry.stub(type_name);
        }
        let text = valid.sources.text().to_owned();
        let prepared = Prepared::new(valid.graph, registry.clone()).map_err(Error::Compile)?;
        Ok(Some(Execution {
            prepared,
            registry,
            stubs: unknown,
            text,
            runtime: Runtime::new().map_err(Error::Runtime)?,
        }))
    }

    /// Runs it while the collector takes its events.
    pub(crate) fn observe(
        &self,
        options: RunOptions,
        terminal: &Terminal,
        events: Events,
        collector: Collector,
    ) -> Result<(RunResult, io::Result<()>), Error> {
        let collected = self
            .runtime
            .spawn_blocking(move || collector.collect(&events));
        let result = self.run(options, terminal)?;
        let collected = self.runtime.block_on(collected).map_err(Error::Run)?;
        Ok((result, collected))
    }

    /// Runs it again as it was recorded.
    pub(crate) fn replay(&self, recording: &Recording, options: RunOptions) -> Replayed {
        self.runtime
            .block_on(self.prepared.replay(recording, options))
    }

    /// The name of the graph.
    pub(crate) fn name(&self) -> &str {
        &self.prepared.plan().graph.name
    }

    /// Runs it once.
    pub(crate) fn run(
        &self,
        mut options: RunOptions,
        terminal: &Terminal,
    ) -> Result<RunResult, Error> {
        options.record = options.record.map(|to| to.graph_text(&*self.text));
        let mut signals = StopSignals::listen()?;
        let (steps, within) = (options.steps, options.stop_within);
        let (stop, duration) = (options.stop.clone(), options.duration);
        let run = self.prepared.begin(options);
        let control = run.control().clone();
        let who = format!("graph {}", self.name());
        self.runtime.block_on(async {
            // In a task of its own, so that signals are heard whatever the components do.
            let running = run.start();
            let mut ended = pin!(async {
                match terminal.watched {
                    true => progress::show_until(running, &control, steps).await,
                    false => running.await,
                }
            });
            let over = async {
                match duration {
                    Some(duration) => sleep(duration.saturating_add(within)).await,
                    None => std::future::pending().await,
                }
            };
            windlass::select! {
                result = ended.as_mut() => return result.map_err(Error::Run),
                () = over => leave_not_stopped(terminal, &who, &still_waits(&control), within),
                () = signals.next() => {}
            }
            stop.cancel();
            tell_stopping(terminal, &who, &waits_for(&control), within);
            windlass::select! {
                result = ended.as_mut() => result.map_err(Error::Run),
                () = signals.next() => leave_interrupted(terminal, &who),
                () = sleep(within) => {
                    leave_not_stopped(terminal, &who, &still_waits(&control), within)
                }
            }
        })
    }
}

/// Returns what a run waits for after a request to stop.
fn waits_for(control: &Control) -> String {
    match &control.under_way()[..] {
        [] => "the end of its epoch, and for its components to stop".to_owned(),
        inside => format!("{} to return", listed("component", inside)),
    }
}

/// Why a run has not stopped.
fn still_waits(control: &Control) -> String {
    match &control.under_way()[..] {
        [] => "it did not come to its end".to_owned(),
        [one] => format!("component {one} has not returned, and is given up"),
        inside => {
            let components = listed("component", inside);
            format!("{components} have not returned, and are given up")
        }
    }
}

/// Returns the types of a graph that are not registered, each once.
fn unknown_types(graph: Option<&Graph>, registry: &Registry) -> Vec<String> {
    let components = graph.map_or(&[][..], |graph| &graph.components);
    let names = components.iter().map(|component| &component.type_name);
    let unknown: BTreeSet<&String> = names.filter(|name| !registry.contains(name)).collect();
    unknown.into_iter().cloned().collect()
}

/// Tells people what went wrong in a run whose result has no place for it.
pub(crate) fn tell_errors(result: &RunResult, terminal: &Terminal) {
    for error in &result.errors {
        terminal.note(&format!("error: {error}"));
    }
}

/// An error of a run, as the commands print it.
#[derive(Serialize)]
pub(crate) struct ErrorDocument<'a> {
    phase: &'a str,
    component_id: &'a str,
    lane: &'a str,
    message: &'a str,
    code: ErrorCode,
    trace_id: &'a str,
    fatal: bool,
}

impl<'a> ErrorDocument<'a> {
    fn new(error: &'a RuntimeError) -> ErrorDocument<'a> {
        ErrorDocument {
            phase: &error.phase,
            component_id: &error.component_id,
            lane: &error.lane,
            message: &error.message,
            code: error.code,
            trace_id: &error.trace_id,
            fatal: error.fatal,
        }
    }

    /// Returns the errors of a run.
    pub(crate) fn of(result: &'a RunResult) -> Vec<ErrorDocument<'a>> {
        result.errors.iter().map(ErrorDocument::new).collect()
    }
}

/// A health event of a run, as the commands print it.
#[derive(Serialize)]
pub(crate) struct HealthDocument<'a> {
    kind: HealthKind,
    component_id: &'a str,
    channel_id: &'a str,
    lane: &'a str,
    count: u64,
    first_epoch: u64,
    last_epoch: u64,
}

impl<'a> HealthDocument<'a> {
    fn new(event: &'a HealthEvent) -> HealthDocument<'a> {
        HealthDocument {
            kind: event.kind,
            component_id: &event.component_id,
            channel_id: &event.channel_id,
            lane: &event.lane,
            count: event.count,
            first_epoch: event.first_epoch,
            last_epoch: event.last_epoch,
        }
    }

    /// Returns the health events of a run.
    pub(crate) fn of(result: &'a RunResult) -> Vec<HealthDocument<'a>> {
        result.health.iter().map(HealthDocument::new).collect()
    }
}

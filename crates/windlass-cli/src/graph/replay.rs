//! `windlass graph replay`.

use serde::Serialize;
use serde_json::Value;
use windlass::graph::record::{Recording, Replayed, RunDifference};
use windlass::graph::{RunOptions, StopReason};

use super::execution::{ErrorDocument, Execution};
use super::source;
use crate::args::{Format, Replay};
use crate::outcome::{Error, Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &Replay, terminal: &Terminal) -> Outcome {
    let format = args.output.format;
    let opened = match args.partial {
        true => Recording::open_part(&args.folder),
        false => Recording::open(&args.folder),
    };
    let recording = opened.map_err(Error::Recording)?;
    let limits = args.limits.limits();
    let opened = match (&args.graph, recording.graph_text()) {
        (Some(file), _) => source::load(file, &limits)?,
        (None, Some(text)) => {
            let name = args.folder.join("graph.yaml");
            source::load_text(text.as_bytes().to_vec(), &name, &limits)
        }
        (None, None) => return Err(Error::NoGraph(args.folder.display().to_string())),
    };
    let Some(execution) = Execution::of(opened, &args.types, format, terminal)? else {
        return Ok(Verdict::Bad);
    };
    let replayed = execution.replay(&recording, RunOptions::default());
    match format {
        Format::Text => terminal.print(&to_text(args, &recording, &replayed))?,
        Format::Json => terminal.print_json(&Document::new(&recording, &replayed))?,
    }
    Ok(Verdict::fine_if(replayed.is_same()))
}

fn to_text(args: &Replay, recording: &Recording, replayed: &Replayed) -> String {
    let result = &replayed.result;
    let mut text = format!(
        "same: {}\ngraph: {}\nepochs: {} of {}\nticks: {}\nstop_reason: {}\nhash: {}\n",
        replayed.is_same(),
        recording.graph(),
        result.epochs,
        recording.whole_epochs(),
        result.ticks,
        result.stop_reason,
        replayed.hash
    );
    if !recording.is_complete() {
        text.push_str(&breaks_off(recording));
    }
    if let Some(difference) = &replayed.difference {
        match args.diff {
            true => text.push_str(&format!("first difference: {difference}\n")),
            false => {
                let (epoch, component) = (difference.epoch, &difference.component);
                text.push_str(&format!(
                    "first difference: epoch {epoch}, component {component}; --diff shows it\n"
                ));
            }
        }
    } else if let Some(recorded) = &replayed.recorded_hash
        && !replayed.is_same()
    {
        // Without a line that differs: the hash is over the trace, too.
        let end = format!("{}, hash {}", result.stop_reason, replayed.hash);
        text.push_str(&format!(
            "first difference: no line differs, but the end does: recorded hash {recorded}, \
             replayed {end}; `windlass graph trace` shows events such as commits and drops\n"
        ));
    }
    for error in &result.errors {
        text.push_str(&format!("error: {error}\n"));
    }
    text
}

/// Says how much of a recording without an end was compared.
fn breaks_off(recording: &Recording) -> String {
    let (last, whole) = (recording.epochs(), recording.whole_epochs());
    match whole {
        0 => "note: the recording breaks off before the end of its first epoch; there was nothing \
              to compare\n"
            .to_owned(),
        _ => format!(
            "note: the recording breaks off in epoch {last}, which was left out; {whole} whole \
             epochs were compared\n"
        ),
    }
}

/// The document that is printed.
#[derive(Serialize)]
struct Document<'a> {
    same: bool,
    graph: &'a str,
    complete: bool,
    epochs: u64,
    recorded_epochs: u64,
    ticks: u64,
    stop_reason: StopReason,
    order: &'a [String],
    hash: &'a str,
    recorded_hash: Option<&'a str>,
    difference: Option<DifferenceDocument<'a>>,
    errors: Vec<ErrorDocument<'a>>,
}

impl<'a> Document<'a> {
    fn new(recording: &'a Recording, replayed: &'a Replayed) -> Document<'a> {
        let result = &replayed.result;
        Document {
            same: replayed.is_same(),
            graph: recording.graph(),
            complete: recording.is_complete(),
            epochs: result.epochs,
            recorded_epochs: recording.epochs(),
            ticks: result.ticks,
            stop_reason: result.stop_reason,
            order: &result.order,
            hash: &replayed.hash,
            recorded_hash: replayed.recorded_hash.as_deref(),
            difference: replayed.difference.as_ref().map(DifferenceDocument::new),
            errors: ErrorDocument::of(result),
        }
    }
}

/// Where a replay first did something else than its recording.
#[derive(Serialize)]
struct DifferenceDocument<'a> {
    epoch: u64,
    component_id: &'a str,
    transaction_id: u64,
    recorded: Value,
    replayed: Value,
    line: usize,
    edited: bool,
}

impl<'a> DifferenceDocument<'a> {
    fn new(difference: &'a RunDifference) -> DifferenceDocument<'a> {
        let line = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
        let lines = &difference.difference;
        DifferenceDocument {
            epoch: difference.epoch,
            component_id: &difference.component,
            transaction_id: difference.transaction,
            recorded: line(&lines.recorded),
            replayed: line(&lines.replayed),
            line: lines.line,
            edited: lines.is_edited,
        }
    }
}

//! `windlass graph metrics`.

use windlass::graph::run::Sample;

use super::execution::{Execution, tell_errors};
use crate::args::{Format, Metrics};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &Metrics, terminal: &Terminal) -> Outcome {
    let format = args.output.format;
    let Some(execution) = Execution::prepare(&args.graph.source, &args.types, format, terminal)?
    else {
        return Ok(Verdict::Bad);
    };
    let result = execution.run(args.graph.bounds.options().traced(), terminal)?;
    tell_errors(&result, terminal);
    match format {
        Format::Text => {
            let samples = result.metrics.samples.iter();
            let samples = samples.filter(|sample| args.all || sample.value != 0.0);
            terminal.print(&to_text(samples))?;
        }
        Format::Json => {
            let mut document = result.metrics.to_json();
            document["graph"] = execution.name().into();
            terminal.print_json(&document)?;
        }
    }
    Ok(Verdict::of_run(&result))
}

/// Name, value and subject in columns.
fn to_text<'a>(samples: impl Iterator<Item = &'a Sample>) -> String {
    let rows: Vec<[String; 3]> = samples
        .map(|sample| [sample.name.to_owned(), value(sample), subject(sample)])
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let (names, values) = (width(0), width(1));
    let mut text = String::new();
    for [name, value, subject] in &rows {
        let line = format!("{name:<names$}  {value:>values$}  {subject}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn value(sample: &Sample) -> String {
    match sample.value.fract() == 0.0 {
        true => format!("{:.0}", sample.value),
        false => format!("{:.6}", sample.value),
    }
}

/// What was counted: the channel, the component or the lane, and the tags.
fn subject(sample: &Sample) -> String {
    let ids = [&sample.channel_id, &sample.component_id, &sample.lane];
    let id = ids.into_iter().find(|id| !id.is_empty()).cloned();
    let tags = sample
        .tags
        .iter()
        .map(|(key, value)| format!("{key}={value}"));
    id.into_iter().chain(tags).collect::<Vec<_>>().join(" ")
}

//! `windlass graph explain`.

use super::registry::registry;
use super::source;
use crate::args::{Format, Inspect};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &Inspect, terminal: &Terminal) -> Outcome {
    let registry = registry();
    let format = args.output.format;
    let Some(valid) = source::valid(&args.source, &registry, format, terminal)? else {
        return Ok(Verdict::Bad);
    };
    let explanation = valid.compile()?.explain();
    match format {
        Format::Text => terminal.print(&explanation.to_string())?,
        Format::Json => terminal.print_json(&explanation)?,
    }
    Ok(Verdict::Fine)
}

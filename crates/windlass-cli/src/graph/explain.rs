//! `windlass graph explain`.

use windlass::graph::check::Level;

use super::registry::registry;
use super::source;
use crate::args::{Explain, Format};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::{Terminal, pretty};

pub(crate) fn run(args: &Explain, terminal: &Terminal) -> Outcome {
    let registry = registry();
    let format = args.output.format;
    let Some(valid) = source::valid(&args.source, &registry, Level::Schema, format, terminal)?
    else {
        return Ok(Verdict::Bad);
    };
    let explanation = valid.compile()?.explain();
    terminal.print(&match format {
        Format::Text => explanation.to_string(),
        Format::Json => pretty(&explanation.to_json()),
    })?;
    Ok(Verdict::Fine)
}

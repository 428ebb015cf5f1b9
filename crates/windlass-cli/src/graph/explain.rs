//! `windlass graph explain`.

use windlass::graph::check::Level;
use windlass::graph::component::Registry;

use super::source;
use crate::args::{Explain, Format};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &Explain, terminal: &Terminal) -> Outcome {
    let registry = Registry::built_in();
    let valid = source::valid(
        &args.source,
        &registry,
        Level::Schema,
        Format::Text,
        terminal,
    )?;
    let Some(valid) = valid else {
        return Ok(Verdict::Bad);
    };
    terminal.print(&valid.compile()?.explain())?;
    Ok(Verdict::Fine)
}

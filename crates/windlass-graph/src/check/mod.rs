//! What is wrong with a graph, or could be: all rules that go beyond the form of a file.

mod boundaries;
mod channels;
mod components;
mod config;
mod context;
mod ids;
mod lanes;
mod loops;
mod machine;
mod payloads;
mod ports;
mod readiness;
mod triggers;

pub use machine::Machine;
pub(crate) use payloads::is_large;

use crate::component::Catalog;
use crate::diagnostic::Diagnostic;
use crate::model::Graph;
use context::Context;

/// What is demanded of component types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Level {
    /// Types may be unknown; the ports of known ones are checked.
    #[default]
    Schema,
    /// Every type has to be known, as a run demands.
    Registry,
}

/// Checks a graph for the machine that this runs on: errors first, then warnings and advice.
pub fn check(graph: &Graph, catalog: &dyn Catalog, level: Level) -> Vec<Diagnostic> {
    check_for(graph, catalog, level, &Machine::this())
}

/// Checks a graph for some machine: errors first, then warnings and advice.
pub fn check_for(
    graph: &Graph,
    catalog: &dyn Catalog,
    level: Level,
    machine: &Machine,
) -> Vec<Diagnostic> {
    let context = Context::new(graph, catalog, level, machine);
    let mut found = Vec::new();
    ids::check(&context, &mut found);
    lanes::check(&context, &mut found);
    components::check(&context, &mut found);
    config::check(&context, &mut found);
    boundaries::check(&context, &mut found);
    ports::check(&context, &mut found);
    channels::check(&context, &mut found);
    payloads::check(&context, &mut found);
    triggers::check(&context, &mut found);
    readiness::check(&context, &mut found);
    loops::check(&context, &mut found);
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
    found
}

//! What is wrong with a graph, or could be: all rules that go beyond the form of a file.

mod boundaries;
mod channels;
mod components;
mod config;
mod context;
mod follow_on;
mod host_info;
mod ids;
mod lanes;
mod loops;
mod payloads;
mod ports;
mod readiness;
mod triggers;

pub(crate) use follow_on::Unread;
pub use host_info::HostInfo;
pub(crate) use payloads::is_large;

use crate::catalog::Catalog;
use crate::diagnostic::Diagnostic;
use crate::load::Partial;
use crate::model::Graph;
use context::Context;

/// What is demanded of component types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Level {
    /// Types may be unknown; the ports of known ones are checked.
    #[default]
    Schema,
    /// Types of other projects may be unknown. Those of this one, whose names begin with
    /// `windlass.` or `topoexec.` or nearly so, have to be known.
    OwnTypes,
    /// Every type has to be known, as a run demands.
    Registry,
}

/// Checks a graph for the machine that this runs on: errors first, then warnings and advice.
pub fn check(graph: &Graph, catalog: &dyn Catalog, level: Level) -> Vec<Diagnostic> {
    check_for(graph, catalog, level, &HostInfo::this())
}

/// Checks what could be read of a file that is wrong in form. What only follows from the mistakes
/// of form, which are known already, is left out.
pub fn check_partial(partial: &Partial, catalog: &dyn Catalog, level: Level) -> Vec<Diagnostic> {
    let mut found = check(&partial.graph, catalog, level);
    found.retain(|finding| !partial.unread.explains(finding));
    found
}

/// Checks a graph for some machine: errors first, then warnings and advice.
pub fn check_for(
    graph: &Graph,
    catalog: &dyn Catalog,
    level: Level,
    host: &HostInfo,
) -> Vec<Diagnostic> {
    let context = Context::new(graph, catalog, level, host);
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

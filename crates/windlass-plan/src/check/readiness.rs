//! Which components can never run.

use std::collections::HashSet;

use super::context::Context;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{BoundaryRole, Component, Condition, EventSourceKind, TriggerKind};

/// Warns about triggers that are never ready:
///
/// * requests and tasks without an input to come in at, unless the outside may bring them;
/// * a debounce that waits longer than `max_latency_ms` lets a message wait;
/// * inputs whose producers can never run themselves, such as a circle that nothing starts.
///
/// Inputs without an edge, and edges from nowhere, are errors of their own and not reported again.
pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let components = &context.graph.components;
    let mut needs: Vec<Need> = components.iter().map(need).collect();
    for (place, component) in components.iter().enumerate() {
        let outside = matches!(
            context.role(place),
            None | Some(BoundaryRole::Input | BoundaryRole::InputOutput)
        );
        if matches!(needs[place], Need::Unknown) && !outside {
            let message = format!(
                "`{}` waits for something that cannot arrive: it has no input",
                component.id
            );
            found.push(warning(place, component, message).fix("set `input` of its event source"));
        }
        let trigger = &component.trigger;
        if trigger.kind == TriggerKind::Debounce
            && !trigger.max_latency.is_zero()
            && trigger.debounce_window > trigger.max_latency
        {
            let message = format!(
                "`{}` drops what has waited for max_latency_ms, and that is before debounce_window_ms ends",
                component.id
            );
            found
                .push(warning(place, component, message).fix("make max_latency_ms the longer one"));
        }
    }
    let runs = spread(context, &mut needs);
    for (place, component) in components.iter().enumerate() {
        if !runs[place] {
            let message = format!(
                "`{}` can never run: nothing that leads to it ever runs",
                component.id
            );
            let fix = "let one of its producers run by itself, with a manual trigger or a timer";
            found.push(warning(place, component, message).fix(fix));
        }
    }
}

fn warning(place: usize, component: &Component, message: String) -> Diagnostic {
    let path = format!("components[{place}].trigger_policy");
    Diagnostic::new(Code::TriggerNeverReady, path, message).component(&component.id)
}

/// What a component waits for before it can run for the first time.
enum Need<'a> {
    Nothing,
    /// Nothing that the graph shows.
    Unknown,
    /// A message at one of these inputs.
    Any(HashSet<&'a str>),
    /// A message at each of these inputs.
    All(HashSet<&'a str>),
}

fn need(component: &Component) -> Need<'_> {
    let trigger = &component.trigger;
    let by_itself = component.event_sources.iter().any(|source| {
        matches!(
            source.kind,
            EventSourceKind::Manual | EventSourceKind::Timer
        )
    });
    let ticks = component
        .event_sources
        .iter()
        .any(|s| s.kind == EventSourceKind::Timer);
    let inputs: HashSet<&str> = component.trigger_inputs().collect();
    match trigger.kind {
        TriggerKind::Manual => Need::Nothing,
        TriggerKind::OnEvent if by_itself => Need::Nothing,
        TriggerKind::OnEvent | TriggerKind::Request | TriggerKind::TaskReady
            if inputs.is_empty() =>
        {
            Need::Unknown
        }
        // Reported as an error, or the timer is what counts.
        _ if inputs.is_empty() || ticks => Need::Nothing,
        TriggerKind::AllInputs | TriggerKind::TimeSync => Need::All(inputs),
        TriggerKind::Condition if trigger.condition == Condition::AllInputsReady => {
            Need::All(inputs)
        }
        _ => Need::Any(inputs),
    }
}

/// Which components can run, beginning with those that need nothing.
fn spread(context: &Context<'_>, needs: &mut [Need<'_>]) -> Vec<bool> {
    let graph = context.graph;
    let mut targets = vec![Vec::new(); graph.components.len()];
    let mut fed: Vec<HashSet<&str>> = vec![HashSet::new(); graph.components.len()];
    for edge in &graph.edges {
        let Some(to) = context.component(&edge.to.component) else {
            continue;
        };
        if let Some(from) = context.component(&edge.from.component) {
            targets[from].push((to, edge.to.port.as_str()));
            fed[to].insert(&edge.to.port);
        }
    }
    let mut runs = vec![false; graph.components.len()];
    let mut ready = Vec::new();
    for (place, need) in needs.iter_mut().enumerate() {
        let at_once = match need {
            Need::Nothing | Need::Unknown => true,
            Need::Any(inputs) => inputs.iter().any(|input| !fed[place].contains(input)),
            Need::All(inputs) => {
                inputs.retain(|input| fed[place].contains(input));
                inputs.is_empty()
            }
        };
        if at_once {
            runs[place] = true;
            ready.push(place);
        }
    }
    while let Some(place) = ready.pop() {
        for &(to, port) in &targets[place] {
            let now = match &mut needs[to] {
                Need::Nothing | Need::Unknown => false,
                Need::Any(inputs) => inputs.contains(port),
                Need::All(inputs) => inputs.remove(port) && inputs.is_empty(),
            };
            if now && !runs[to] {
                runs[to] = true;
                ready.push(to);
            }
        }
    }
    runs
}

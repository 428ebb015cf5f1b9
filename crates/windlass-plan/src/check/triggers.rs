//! Triggers and event sources: they have what they need, and fit the channels at their inputs.

use std::collections::HashSet;

use super::context::Context;
use super::ports::known;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::{Component, Edge, EventSourceKind, Mode, TriggerKind};

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (place, component) in context.graph.components.iter().enumerate() {
        let mut rules = Rules {
            context,
            place,
            component,
            found,
        };
        rules.sources();
        rules.policy();
        rules.inputs();
        rules.modes();
    }
}

/// Whether a trigger looks at nothing but messages at inputs.
fn is_input_driven(kind: TriggerKind) -> bool {
    !matches!(
        kind,
        TriggerKind::Manual | TriggerKind::OnEvent | TriggerKind::Request | TriggerKind::TaskReady
    )
}

/// The rules for one component.
struct Rules<'c, 'a> {
    context: &'c Context<'a>,
    place: usize,
    component: &'a Component,
    found: &'c mut Vec<Diagnostic>,
}

impl<'a> Rules<'_, 'a> {
    fn report(&mut self, code: Code, field: &str, message: String, fix: &str) {
        let path = format!("components[{}].{field}", self.place);
        let finding = Diagnostic::new(code, path, message);
        self.found
            .push(finding.component(&self.component.id).fix(fix));
    }

    fn error(&mut self, field: &str, message: &str, fix: &str) {
        self.report(Code::GraphValidationError, field, message.to_owned(), fix);
    }

    fn sources(&mut self) {
        let component = self.component;
        let looks_at_inputs = |kind: EventSourceKind| {
            !matches!(kind, EventSourceKind::Manual | EventSourceKind::Timer)
        };
        let has_inputs = component
            .event_sources
            .iter()
            .any(|source| looks_at_inputs(source.kind));
        for (nth, source) in component.event_sources.iter().enumerate() {
            let field = format!("event_sources[{nth}]");
            match source.kind {
                EventSourceKind::Timer => {
                    if source.period.is_zero() {
                        let message = "a timer needs a period of more than 0";
                        self.error(&format!("{field}.period_ms"), message, "set `period_ms`");
                    }
                    if has_inputs || !source.inputs.is_empty() {
                        let message = "a timer does not mix with sources that look at inputs";
                        self.error(&field, message, "use two components");
                    }
                }
                EventSourceKind::Message if source.inputs.is_empty() => {
                    let message = "a message source needs an input".to_owned();
                    self.report(Code::TriggerMissingInput, &field, message, "set `input`");
                }
                _ => {}
            }
        }
    }

    fn policy(&mut self) {
        let component = self.component;
        let trigger = &component.trigger;
        match trigger.kind {
            TriggerKind::Batch if trigger.batch_size == 0 && trigger.batch_window.is_zero() => {
                let message = "a batch needs a size or a window";
                self.error(
                    "trigger_policy",
                    message,
                    "set `batch_size` or `batch_window_ms`",
                );
            }
            TriggerKind::RateLimit if trigger.min_interval.is_zero() => {
                let message = "rate_limit needs an interval";
                self.error("trigger_policy", message, "set `min_interval_ms`");
            }
            _ => {}
        }
        let ticks = component
            .event_sources
            .iter()
            .any(|s| s.kind == EventSourceKind::Timer);
        if is_input_driven(trigger.kind) && !ticks && component.trigger_inputs().next().is_none() {
            let message = format!("a trigger of type {} needs an input", trigger.kind);
            let fix = "set `inputs` of the trigger or of an event source";
            self.report(Code::TriggerMissingInput, "trigger_policy", message, fix);
        }
    }

    /// Every input that is looked at has an edge.
    fn inputs(&mut self) {
        let component = self.component;
        let connected: HashSet<&str> = self
            .context
            .incoming(self.place)
            .map(|(_, edge)| edge.to.port.as_str())
            .collect();
        // The same input may be named by the trigger and by a source: one finding is enough.
        let mut seen = HashSet::new();
        for (nth, input) in component.trigger.inputs.iter().enumerate() {
            if seen.insert(input.as_str()) {
                self.input(input, &connected, &format!("trigger_policy.inputs[{nth}]"));
            }
        }
        for (place, source) in component.event_sources.iter().enumerate() {
            for (nth, input) in source.inputs.iter().enumerate() {
                if seen.insert(input.as_str()) {
                    self.input(
                        input,
                        &connected,
                        &format!("event_sources[{place}].inputs[{nth}]"),
                    );
                }
            }
        }
    }

    fn input(&mut self, input: &str, connected: &HashSet<&str>, field: &str) {
        let id = &self.component.id;
        if let Some(descriptor) = self.context.descriptor(self.place)
            && !descriptor.open_ports
            && descriptor.inputs.iter().all(|port| port.name != input)
        {
            let fix = known(&descriptor.inputs, "input");
            let message = format!("`{id}` has no input `{input}`");
            self.report(Code::UnknownPort, field, message, &fix);
        } else if !connected.contains(input)
            && !self.context.is_duplicate(self.place)
            && !self.context.may_be_meant(self.place, input)
        {
            let message = format!("no edge ends at `{id}.{input}`, which `{id}` waits for");
            let fix = format!("add an edge `to: {id}.{input}`");
            self.report(Code::TriggerMissingInput, field, message, &fix);
        }
    }

    /// Triggers that cannot work with the modes of the channels at their inputs: time_sync at a
    /// barrier. It compares the oldest message of each input, and a barrier hands over a whole set
    /// at once.
    fn modes(&mut self) {
        let trigger = &self.component.trigger;
        let inputs: HashSet<&str> = self.component.trigger_inputs().collect();
        let edges = || {
            let incoming = self.context.incoming(self.place);
            incoming.filter(|(_, edge)| inputs.contains(edge.to.port.as_str()))
        };
        if trigger.kind != TriggerKind::TimeSync {
            return;
        }
        let barriers = edges().filter(|(_, edge)| edge.policy.mode == Mode::Barrier);
        let clashes: Vec<(&'a Edge, String)> = barriers
            .map(|(_, edge)| {
                let message = format!(
                    "time_sync compares single messages, and `{}` hands over {} at once",
                    edge.id, edge.policy.capacity
                );
                (edge, message)
            })
            .collect();
        for (edge, message) in clashes {
            let path = format!("components[{}].trigger_policy", self.place);
            let finding = Diagnostic::new(Code::IncompatibleTriggerEdgeMode, path, message);
            self.found.push(
                finding
                    .component(&self.component.id)
                    .edge(&edge.id)
                    .fix("use `mode: queue` on the edge"),
            );
        }
    }
}

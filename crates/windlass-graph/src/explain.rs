//! A plan in words: why things run in this order, when each component runs, and what its edges do.

use std::fmt::Write;

use crate::compile::{Plan, Region};
use crate::model::{
    Component, Convergence, Edge, EdgeKind, EventSourceKind, Mode, OnError, Overflow, Priority,
    TriggerKind,
};

impl Plan {
    /// Explains the plan to people.
    pub fn explain(&self) -> String {
        let graph = &self.graph;
        let mut out = String::new();
        let _ = writeln!(
            out,
            "Graph {}: {} components, {} edges, {} lanes, {} composite loops.",
            graph.name,
            graph.components.len(),
            graph.edges.len(),
            graph.lanes.len(),
            graph.loops.len()
        );
        let _ = writeln!(
            out,
            "\nEach epoch runs {} regions in this order:",
            self.order.len()
        );
        for (number, &place) in self.order.iter().enumerate() {
            self.explain_region(number + 1, &self.regions[place], &mut out);
        }
        self.explain_edges(&mut out);
        self.explain_lanes(&mut out);
        out
    }

    fn explain_region(&self, number: usize, region: &Region, out: &mut String) {
        let after: Vec<&str> = region
            .incoming
            .iter()
            .map(|&r| self.regions[r].id.as_str())
            .collect();
        let why = match after.as_slice() {
            [] => "nothing in this epoch comes before it".to_owned(),
            after => format!("after {}", after.join(", ")),
        };
        let _ = writeln!(out, "{number:>3}. {}: {why}.", region.id);
        if let Some(composite) = region.composite_loop {
            let _ = writeln!(out, "     {}", self.explain_loop(composite));
        }
        for &member in &region.components {
            let component = &self.graph.components[member];
            let name = match region.composite_loop {
                Some(_) => format!("{}: ", component.id),
                None => String::new(),
            };
            let _ = writeln!(out, "     {name}{}.", explain_component(component));
        }
    }

    fn explain_loop(&self, composite: usize) -> String {
        let policy = &self.graph.loops[composite].policy;
        let mut text = format!(
            "A loop ({}): its members run in order of their ids, at most {} times",
            policy.kind,
            policy.max_iterations.max(1)
        );
        match policy.convergence {
            None => {}
            Some(Convergence::StableState) => {
                text.push_str(", until a pass publishes what the one before did");
            }
            Some(_) => text.push_str(", and once is enough"),
        }
        if let Some(threshold) = policy.residual_threshold {
            let _ = write!(text, ", until the residual is at most {threshold}");
        }
        text.push_str("; what leaves it becomes visible when it ends.");
        text
    }

    fn explain_edges(&self, out: &mut String) {
        if self.graph.edges.is_empty() {
            return;
        }
        out.push_str("\nEdges:\n");
        for edge in &self.graph.edges {
            let _ = writeln!(out, "  {}: {}.", edge.id, explain_edge(edge));
        }
    }

    fn explain_lanes(&self, out: &mut String) {
        out.push_str("\nLanes:\n");
        for lane in &self.graph.lanes {
            let _ = write!(out, "  {}: {}", lane.id, lane.kind);
            match lane.kind {
                crate::model::LaneKind::ThreadPool => {
                    let _ = write!(
                        out,
                        " with {} workers and room for {} more invocations; beyond that {}",
                        lane.width(),
                        lane.queue_capacity,
                        lane.overflow
                    );
                }
                crate::model::LaneKind::FixedRate => {
                    let _ = write!(out, ", a tick every {:?}", lane.cadence());
                }
                crate::model::LaneKind::EventLoop => out.push_str(", in the run's own task"),
            }
            out.push_str(".\n");
        }
    }
}

fn explain_component(component: &Component) -> String {
    let mut text = explain_trigger(component);
    let execution = &component.execution;
    let _ = write!(text, " on lane {}", execution.lane);
    if execution.priority != Priority::Normal {
        let _ = write!(text, ", priority {}", execution.priority);
    }
    match execution.on_error {
        OnError::FailFast => {}
        OnError::Continue => text.push_str("; an error discards what it published"),
        OnError::Isolate => text.push_str("; an error deactivates it"),
    }
    text
}

fn explain_trigger(component: &Component) -> String {
    let policy = &component.trigger;
    let inputs: Vec<&str> = component.trigger_inputs().collect();
    let inputs = match inputs.as_slice() {
        [] => "its inputs".to_owned(),
        inputs => inputs.join(", "),
    };
    let mut text = match policy.kind {
        TriggerKind::Manual | TriggerKind::OnEvent => explain_sources(component),
        TriggerKind::AnyInput | TriggerKind::Request | TriggerKind::TaskReady => {
            format!("runs once for each message at {inputs}")
        }
        TriggerKind::AllInputs => format!("runs when there is a message at each of {inputs}"),
        TriggerKind::TimeSync => format!(
            "runs when the messages at {inputs} are of the same time, within {:?}",
            policy.sync_slop
        ),
        TriggerKind::Batch => {
            let mut text = format!("runs with a batch of messages at {inputs}");
            if policy.batch_size > 0 {
                let _ = write!(text, ", {} at a time", policy.batch_size);
            }
            if !policy.batch_window.is_zero() {
                let _ = write!(text, ", or what is there after {:?}", policy.batch_window);
            }
            text
        }
        TriggerKind::Watermark => format!(
            "runs once for each message at {inputs} that is not older than the newest by more than {:?}",
            policy.watermark_lateness
        ),
        TriggerKind::Condition => format!("runs when {} holds at {inputs}", policy.condition),
        TriggerKind::Debounce => format!(
            "runs with the newest of {inputs} when none has come for {:?}",
            policy.debounce_window
        ),
        TriggerKind::RateLimit => format!("runs once for each message at {inputs}"),
    };
    if policy.coalesce {
        text.push_str(", only the newest of each");
    }
    if !policy.min_interval.is_zero() {
        let _ = write!(text, ", at most once in {:?}", policy.min_interval);
    }
    text
}

fn explain_sources(component: &Component) -> String {
    let source = |source: &crate::model::EventSource| match source.kind {
        EventSourceKind::Manual => "once every epoch".to_owned(),
        EventSourceKind::Timer => format!("every {:?}", source.period),
        _ => format!("for each message at {}", source.inputs.join(", ")),
    };
    let sources: Vec<String> = component.event_sources.iter().map(source).collect();
    format!("runs {}", sources.join(" and "))
}

fn explain_edge(edge: &Edge) -> String {
    let policy = &edge.policy;
    let when = match edge.kind {
        EdgeKind::Immediate => "in the same epoch, when its component is done",
        EdgeKind::Delay => "in the next epoch",
        EdgeKind::State => "in the next epoch, and in the state store",
        EdgeKind::Async => "in the next epoch, as a task that has ended",
    };
    let kept = match policy.mode {
        Mode::Latest => "the newest counts".to_owned(),
        Mode::Latched => "the newest counts, also for who comes late".to_owned(),
        Mode::PreviousTick => "the newest of the epoch before counts".to_owned(),
        Mode::Queue | Mode::RingBuffer => format!("up to {} wait in line", policy.capacity),
        Mode::Barrier => format!("{} at a time", policy.capacity),
    };
    let beyond = match policy.overflow {
        Overflow::Overwrite | Overflow::DropOldest => "the oldest gives way",
        Overflow::DropNewest | Overflow::Reject | Overflow::Block => "the new one is refused",
        Overflow::FailFast => "the run ends",
    };
    format!(
        "what {} publishes reaches {} {when}; {kept}, and when that is full {beyond}",
        edge.from, edge.to
    )
}

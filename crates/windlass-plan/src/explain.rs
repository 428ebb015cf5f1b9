//! A plan in words: why things run in this order, when each component runs, and what its edges do.

use std::fmt::{self, Write};

use serde::Serialize;

use crate::compile::{Plan, Region};
use crate::model::{
    Component, Convergence, Edge, EdgeKind, EventSourceKind, Lane, LaneKind, Mode, OnError,
    Overflow, Priority, TriggerKind,
};

/// A plan in words: as text for people (`Display`), as JSON (`Serialize`), or part by part.
///
/// ```
/// # use windlass_plan::model::{Component, Graph, Lane, LaneKind};
/// # let mut graph = Graph::new("one");
/// # graph.lanes.push(Lane::new("main", LaneKind::EventLoop));
/// # graph.components.push(Component::new("hello", "mine.Hello", "main"));
/// let plan = windlass_plan::compile::compile(graph)?;
/// let explanation = plan.explain();
/// assert_eq!(explanation.regions[0].components[0].text, "runs once every epoch on lane main");
/// println!("{explanation}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// What the graph has.
    pub summary: String,
    /// What runs in an epoch, in its order.
    pub regions: Vec<ExplainedRegion>,
    /// What the edges do.
    pub edges: Vec<Explained>,
    /// What the lanes are.
    pub lanes: Vec<Explained>,
}

/// A region of a plan in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedRegion {
    /// The id of the region.
    pub id: String,
    /// The regions that come before it because something leads from them to it.
    pub after: Vec<String>,
    /// How it goes round, if it is a loop.
    pub composite_loop: Option<String>,
    /// When its components run.
    pub components: Vec<Explained>,
}

/// A thing of a plan in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// The id of the thing.
    pub id: String,
    /// A sentence without its full stop.
    pub text: String,
}

impl Explained {
    fn new(id: &str, text: String) -> Explained {
        let id = id.to_owned();
        Explained { id, text }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}.", self.summary)?;
        let count = self.regions.len();
        writeln!(f, "\nEach epoch runs {count} regions in this order:")?;
        for (nth, region) in self.regions.iter().enumerate() {
            let why = match region.after.as_slice() {
                [] => "nothing in this epoch comes before it".to_owned(),
                after => format!("after {}", after.join(", ")),
            };
            writeln!(f, "{:>3}. {}: {why}.", nth + 1, region.id)?;
            if let Some(text) = &region.composite_loop {
                writeln!(f, "     {text}.")?;
            }
            for component in &region.components {
                match region.composite_loop {
                    Some(_) => writeln!(f, "     {}: {}.", component.id, component.text)?,
                    None => writeln!(f, "     {}.", component.text)?,
                }
            }
        }
        for (title, list) in [("Edges", &self.edges), ("Lanes", &self.lanes)] {
            if list.is_empty() {
                continue;
            }
            writeln!(f, "\n{title}:")?;
            for thing in list {
                writeln!(f, "  {}: {}.", thing.id, thing.text)?;
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Explains the plan to people.
    pub fn explain(&self) -> Explanation {
        let graph = &self.graph;
        let edge = |edge: &Edge| Explained::new(&edge.id, explain_edge(edge));
        let lane = |lane: &Lane| Explained::new(&lane.id, explain_lane(lane));
        Explanation {
            summary: format!(
                "Graph {}: {} components, {} edges, {} lanes, {} composite loops",
                graph.name,
                graph.components.len(),
                graph.edges.len(),
                graph.lanes.len(),
                graph.loops.len()
            ),
            regions: self
                .order
                .iter()
                .map(|&place| self.explain_region(&self.regions[place]))
                .collect(),
            edges: graph.edges.iter().map(edge).collect(),
            lanes: graph.lanes.iter().map(lane).collect(),
        }
    }

    fn explain_region(&self, region: &Region) -> ExplainedRegion {
        let member = |&member: &usize| {
            let component = &self.graph.components[member];
            Explained::new(&component.id, explain_component(component))
        };
        ExplainedRegion {
            id: region.id.clone(),
            after: region
                .incoming
                .iter()
                .map(|&r| self.regions[r].id.clone())
                .collect(),
            composite_loop: region.composite_loop.map(|place| self.explain_loop(place)),
            components: region.components.iter().map(member).collect(),
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
        text.push_str("; what leaves it becomes visible when it ends");
        text
    }
}

fn explain_lane(lane: &Lane) -> String {
    let what = match lane.kind {
        LaneKind::ThreadPool => format!(
            " with {} workers and room for {} more invocations; beyond that {}",
            lane.width(),
            lane.queue_capacity,
            lane.overflow
        ),
        LaneKind::FixedRate => format!(", a tick every {:?}", lane.cadence()),
        LaneKind::EventLoop => ", in the run's own task".to_owned(),
        LaneKind::IsolatedThread if lane.per_component => {
            ", a thread for each of its components".to_owned()
        }
        LaneKind::IsolatedThread => ", on a thread of its own".to_owned(),
        LaneKind::ManualStep => ", when somebody asks for a step".to_owned(),
    };
    format!("{}{what}", lane.kind)
}

fn explain_component(component: &Component) -> String {
    let mut text = explain_trigger(component);
    let execution = &component.execution;
    let _ = write!(text, " on lane {}", execution.lane);
    if execution.priority != Priority::Normal {
        let _ = write!(text, ", priority {}", execution.priority);
    }
    if !execution.timeout.is_zero() {
        let _ = write!(text, ", for {:?} at most", execution.timeout);
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

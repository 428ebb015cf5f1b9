//! A graph as plain data: what a file says, with every default filled in, after templates and
//! subgraphs.
//!
//! Durations that a file leaves out or sets to 0 are `Duration::ZERO` here, and mean "none".

mod component;
mod edge;
mod lane;
mod loops;
mod named;

use std::fmt;

pub use crate::named;

pub use component::{
    Boundary, BoundaryRole, Component, Condition, EventSource, EventSourceKind, Execution, OnError,
    Priority, TriggerKind, TriggerPolicy,
};
pub use edge::{CopyPolicy, Edge, EdgeKind, EdgePolicy, Endpoint, Mode, Overflow, Owner, Readers};
pub use lane::{Lane, LaneKind, LaneOverflow, OnDeadlineMiss, OsPolicy, OverrunPolicy, RtPolicy};
pub use loops::{CompositeLoop, Convergence, LoopKind, LoopPolicy, PartialSuccess};

/// The values of a `config` map.
pub type Config = serde_json::Map<String, serde_json::Value>;

/// A whole graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// The version of the schema that it is written in: 1 or 2.
    pub schema_version: u64,
    /// The name of the graph.
    pub name: String,
    /// What it is for.
    pub kind: GraphKind,
    /// The section `graph.config`.
    pub config: Config,
    /// The domain of event timestamps.
    pub event_domain: ClockDomain,
    /// The lanes, in the order of the file.
    pub lanes: Vec<Lane>,
    /// The components, in the order of the file; those of subgraphs and template instances follow.
    pub components: Vec<Component>,
    /// The edges, likewise.
    pub edges: Vec<Edge>,
    /// The composite loops, likewise.
    pub loops: Vec<CompositeLoop>,
    /// What was expanded into the above.
    pub hierarchy: Vec<Scope>,
}

/// A subgraph or template instance that was expanded: the full ids of what came from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Its id, which is the prefix of all others.
    pub id: String,
    /// The ids of its components.
    pub components: Vec<String>,
    /// The ids of its edges.
    pub edges: Vec<String>,
    /// The ids of its composite loops.
    pub loops: Vec<String>,
}

named! {
    /// What a graph is for.
    #[derive(Default)]
    pub enum GraphKind {
        /// To be run: it needs an input and an output boundary.
        #[default]
        Runnable = "runnable",
        /// A test's own graph, which may lack boundaries.
        InternalTest = "internal_test",
    }
}

named! {
    /// Which clock a timestamp is of.
    #[derive(Default)]
    pub enum ClockDomain {
        /// The monotonic clock.
        #[default]
        Steady = "steady",
        /// The time of day.
        System = "system",
        /// A device's own clock.
        Device = "device",
        /// A clock outside of the process.
        External = "external",
    }
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph {
            schema_version: 1,
            name: name.into(),
            kind: GraphKind::Runnable,
            config: Config::new(),
            event_domain: ClockDomain::Steady,
            lanes: Vec::new(),
            components: Vec::new(),
            edges: Vec::new(),
            loops: Vec::new(),
            hierarchy: Vec::new(),
        }
    }

    /// The component of this id and its place.
    pub fn component(&self, id: &str) -> Option<(usize, &Component)> {
        self.components.iter().enumerate().find(|(_, c)| c.id == id)
    }

    /// The lane of this id and its place.
    pub fn lane(&self, id: &str) -> Option<(usize, &Lane)> {
        self.lanes.iter().enumerate().find(|(_, l)| l.id == id)
    }

    /// The edges that end at this component, with their places.
    pub fn incoming<'a>(&'a self, id: &'a str) -> impl Iterator<Item = (usize, &'a Edge)> {
        self.edges
            .iter()
            .enumerate()
            .filter(move |(_, e)| e.to.component == id)
    }

    /// The edges that begin at this component, with their places.
    pub fn outgoing<'a>(&'a self, id: &'a str) -> impl Iterator<Item = (usize, &'a Edge)> {
        self.edges
            .iter()
            .enumerate()
            .filter(move |(_, e)| e.from.component == id)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.component, self.port)
    }
}

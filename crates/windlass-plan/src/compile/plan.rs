//! A compiled graph: everything by number, so that a run looks nothing up by name.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use super::cycles::{immediate_successors, strongly_connected};
use super::order::{region_order, start_order};
use crate::model::{EdgeKind, Endpoint, Graph};

/// A compiled graph. All numbers in it are places in the lists of [`Plan::graph`] or in those
/// beside them.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What was compiled.
    pub graph: Graph,
    /// The components, in the order of `graph.components`.
    pub nodes: Vec<NodePlan>,
    /// The edges, in the order of `graph.edges`.
    pub edges: Vec<EdgePlan>,
    /// What runs as one, in the order in which they were found.
    pub regions: Vec<Region>,
    /// In which order these run: places in `regions`.
    pub order: Vec<usize>,
    /// The region of each component.
    pub region_of: Vec<usize>,
    /// In which order components are started; they are stopped in the opposite one.
    pub start_order: Vec<usize>,
}

/// A component by numbers.
#[derive(Debug, Clone, Default)]
pub struct NodePlan {
    /// The number of its lane.
    pub lane: usize,
    /// The input ports that edges end at or triggers name.
    pub inputs: Vec<PortPlan>,
    /// The output ports that edges begin at.
    pub outputs: Vec<PortPlan>,
}

/// A port by numbers.
#[derive(Debug, Clone)]
pub struct PortPlan {
    /// The name of the port.
    pub name: String,
    /// The edges at it, in the order of the file.
    pub edges: Vec<usize>,
}

/// An edge by numbers.
#[derive(Debug, Clone, Copy)]
pub struct EdgePlan {
    /// The component it begins at.
    pub from: usize,
    /// Its place in that component's outputs.
    pub from_port: usize,
    /// The component it ends at.
    pub to: usize,
    /// Its place in that component's inputs.
    pub to_port: usize,
}

/// What runs as one.
#[derive(Debug, Clone)]
pub struct Region {
    /// The loop's id, or the component's.
    pub id: String,
    /// Its members by id, which is also their order in a loop.
    pub components: Vec<usize>,
    /// The composite loop it is, a place in `graph.loops`.
    pub composite_loop: Option<usize>,
    /// The regions that run before it, by id.
    pub incoming: Vec<usize>,
    /// The regions that wait for it, by id.
    pub outgoing: Vec<usize>,
}

/// Why a graph cannot be compiled. [`check`](crate::check) says the same with a code, a place and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileError {
    /// An edge ends or begins at a component that is not there.
    UnknownComponent {
        /// The id of the edge.
        edge: String,
        /// What it names.
        component: String,
    },
    /// A component names a lane that is not there.
    UnknownLane {
        /// The id of the component.
        component: String,
        /// What it names.
        lane: String,
    },
    /// A cycle of immediate edges that is not exactly one composite loop.
    Cycle {
        /// The ids of its members.
        components: Vec<String>,
    },
    /// Two components have the same id.
    DuplicateComponent {
        /// The id of the component.
        component: String,
    },
}

/// Compiles a graph that has been checked.
///
/// ```
/// use windlass_plan::compile::compile;
/// use windlass_plan::model::{Component, Edge, EdgeKind, Graph, Lane, LaneKind};
///
/// let mut graph = Graph::new("two");
/// graph.lanes.push(Lane::new("main", LaneKind::EventLoop));
/// graph.components.push(Component::new("second", "any.Type", "main"));
/// graph.components.push(Component::new("first", "any.Type", "main"));
/// graph.edges.push(Edge::new("e", "first.out", "second.in", EdgeKind::Immediate));
/// let plan = compile(graph)?;
/// assert_eq!(plan.region_order(), ["first", "second"]);
/// # Ok::<(), windlass_plan::compile::CompileError>(())
/// ```
pub fn compile(graph: Graph) -> Result<Plan, CompileError> {
    let place_of = component_places(&graph)?;
    let mut nodes = nodes(&graph)?;
    let edges = connect(&graph, &place_of, &mut nodes)?;
    let (mut regions, region_of) = regions(&graph)?;
    link(&graph, &mut regions, &region_of);
    let order = region_order(&graph, &regions);
    let start_order = start_order(&graph);
    Ok(Plan {
        graph,
        nodes,
        edges,
        regions,
        order,
        region_of,
        start_order,
    })
}

impl Plan {
    /// The ids of the regions in the order in which they run.
    pub fn region_order(&self) -> Vec<&str> {
        self.order
            .iter()
            .map(|&region| self.regions[region].id.as_str())
            .collect()
    }
}

fn component_places(graph: &Graph) -> Result<HashMap<String, usize>, CompileError> {
    let mut place_of = HashMap::with_capacity(graph.components.len());
    for (place, component) in graph.components.iter().enumerate() {
        if place_of.insert(component.id.clone(), place).is_some() {
            let component = component.id.clone();
            return Err(CompileError::DuplicateComponent { component });
        }
    }
    Ok(place_of)
}

/// The components with their lanes, and those ports that their triggers name.
fn nodes(graph: &Graph) -> Result<Vec<NodePlan>, CompileError> {
    let lane_of: HashMap<&str, usize> = graph
        .lanes
        .iter()
        .enumerate()
        .map(|(place, lane)| (lane.id.as_str(), place))
        .collect();
    let node = |component: &crate::model::Component| {
        let Some(&lane) = lane_of.get(component.execution.lane.as_str()) else {
            return Err(CompileError::UnknownLane {
                component: component.id.clone(),
                lane: component.execution.lane.clone(),
            });
        };
        let mut node = NodePlan {
            lane,
            ..NodePlan::default()
        };
        let of_sources = component.event_sources.iter().flat_map(|s| &s.inputs);
        for input in component.trigger.inputs.iter().chain(of_sources) {
            port_place(&mut node.inputs, input);
        }
        Ok(node)
    };
    graph.components.iter().map(node).collect()
}

fn connect(
    graph: &Graph,
    place_of: &HashMap<String, usize>,
    nodes: &mut [NodePlan],
) -> Result<Vec<EdgePlan>, CompileError> {
    let find = |edge: &crate::model::Edge, end: &Endpoint| {
        place_of
            .get(&end.component)
            .copied()
            .ok_or_else(|| CompileError::UnknownComponent {
                edge: edge.id.clone(),
                component: end.component.clone(),
            })
    };
    let mut edges = Vec::with_capacity(graph.edges.len());
    for (place, edge) in graph.edges.iter().enumerate() {
        let (from, to) = (find(edge, &edge.from)?, find(edge, &edge.to)?);
        let from_port = port_place(&mut nodes[from].outputs, &edge.from.port);
        nodes[from].outputs[from_port].edges.push(place);
        let to_port = port_place(&mut nodes[to].inputs, &edge.to.port);
        nodes[to].inputs[to_port].edges.push(place);
        edges.push(EdgePlan {
            from,
            from_port,
            to,
            to_port,
        });
    }
    Ok(edges)
}

/// The place of a port, which is added if it is not there.
fn port_place(ports: &mut Vec<PortPlan>, name: &str) -> usize {
    if let Some(place) = ports.iter().position(|port| port.name == name) {
        return place;
    }
    ports.push(PortPlan {
        name: name.to_owned(),
        edges: Vec::new(),
    });
    ports.len() - 1
}

/// The regions without their links, in the order of Tarjan's algorithm, and the region of each
/// component.
fn regions(graph: &Graph) -> Result<(Vec<Region>, Vec<usize>), CompileError> {
    let mut loop_of: HashMap<BTreeSet<&str>, usize> = HashMap::new();
    for (place, composite) in graph.loops.iter().enumerate() {
        let members = composite.components.iter().map(String::as_str).collect();
        loop_of.entry(members).or_insert(place);
    }
    let with_self_edge: HashSet<&str> = graph
        .edges
        .iter()
        .filter(|e| e.kind == EdgeKind::Immediate && e.from.component == e.to.component)
        .map(|e| e.from.component.as_str())
        .collect();
    let mut regions = Vec::new();
    let mut region_of = vec![0; graph.components.len()];
    for components in strongly_connected(graph) {
        let ids = || components.iter().map(|&c| graph.components[c].id.as_str());
        let cyclic = components.len() > 1 || ids().any(|id| with_self_edge.contains(id));
        let composite_loop = if cyclic {
            match loop_of.get(&ids().collect::<BTreeSet<_>>()) {
                Some(&place) => Some(place),
                None => {
                    let components = ids().map(str::to_owned).collect();
                    return Err(CompileError::Cycle { components });
                }
            }
        } else {
            None
        };
        let id = match composite_loop {
            Some(place) => graph.loops[place].id.clone(),
            None => graph.components[components[0]].id.clone(),
        };
        for &member in &components {
            region_of[member] = regions.len();
        }
        regions.push(Region {
            id,
            components,
            composite_loop,
            incoming: Vec::new(),
            outgoing: Vec::new(),
        });
    }
    Ok((regions, region_of))
}

/// Says which region waits for which.
fn link(graph: &Graph, regions: &mut [Region], region_of: &[usize]) {
    let mut seen = HashSet::new();
    for (from, targets) in immediate_successors(graph).into_iter().enumerate() {
        for to in targets {
            let (from, to) = (region_of[from], region_of[to]);
            if from != to && seen.insert((from, to)) {
                regions[from].outgoing.push(to);
                regions[to].incoming.push(from);
            }
        }
    }
    let ids: Vec<String> = regions.iter().map(|region| region.id.clone()).collect();
    for region in regions {
        region.incoming.sort_by(|&a, &b| ids[a].cmp(&ids[b]));
        region.outgoing.sort_by(|&a, &b| ids[a].cmp(&ids[b]));
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::UnknownComponent { edge, component } => {
                write!(
                    f,
                    "edge {edge} names component {component}, which is not there"
                )
            }
            CompileError::UnknownLane { component, lane } => {
                write!(
                    f,
                    "component {component} names lane {lane}, which is not there"
                )
            }
            CompileError::Cycle { components } => write!(
                f,
                "{} form a cycle of immediate edges: make exactly these a composite loop, or one of the edges a delay",
                components.join(", ")
            ),
            CompileError::DuplicateComponent { component } => {
                write!(f, "two components have the id {component}")
            }
        }
    }
}

impl std::error::Error for CompileError {}

//! A plan as steps of fork-join.

use windlass_plan::compile::Plan;
use windlass_runtime::fork_join::Flow;

/// Returns the regions of a plan as steps that wait for each other, to be run by all workers at
/// once: step `n` is region `n`.
///
/// ```
/// # use windlass_graph::compile::compile;
/// # use windlass_graph::model::{Component, Edge, EdgeKind, Graph, Lane, LaneKind};
/// # let mut graph = Graph::new("two");
/// # graph.lanes.push(Lane::new("main", LaneKind::EventLoop));
/// # graph.components.push(Component::new("first", "any.Type", "main"));
/// # graph.components.push(Component::new("second", "any.Type", "main"));
/// # graph.edges.push(Edge::new("e", "first.out", "second.in", EdgeKind::Immediate));
/// let plan = compile(graph)?;
/// let mut flow = windlass_graph::flow(&plan);
/// flow.run(|region| println!("{}", plan.regions[region].id));
/// # Ok::<(), windlass_graph::compile::CompileError>(())
/// ```
pub fn flow(plan: &Plan) -> Flow {
    let targets: Vec<Vec<usize>> = plan.regions.iter().map(|r| r.outgoing.clone()).collect();
    Flow::new(&targets).expect("regions wait for earlier ones only")
}

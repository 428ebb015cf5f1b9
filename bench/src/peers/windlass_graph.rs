//! Windlass's graphs: compiled plans run by the workers, and the whole epoch machinery in one task.

use windlass::graph::compile::{Plan, compile};
use windlass::graph::component::Registry;
use windlass::graph::model::{Component, Edge, EdgeKind, Graph, Lane, LaneKind, TriggerKind};
use windlass::graph::{Prepared, RunOptions};

use super::AsyncPeer;
use super::windlass::Windlass;
use crate::sample::{Sample, time};
use crate::workload::Workload;
use crate::workloads::graphs;

/// A compiled graph, `rounds` times.
pub fn plan(workload: Workload, rounds: u64) -> Sample {
    let plan = compiled(&graphs::shape(workload));
    let nodes = plan.regions.len();
    graphs::per_node(nodes, rounds, || {
        let mut flow = plan.flow();
        Windlass::run_on_worker(async move { graphs::rounds(nodes, rounds, |body| flow.run(body)) })
    })
}

fn compiled(shape: &graphs::Shape) -> Plan {
    let mut graph = Graph::new("shape");
    graph.lanes.push(Lane::new("main", LaneKind::EventLoop));
    for (node, targets) in shape.iter().enumerate() {
        graph
            .components
            .push(Component::new(format!("n{node}"), "any.Type", "main"));
        for target in targets {
            let (from, to) = (format!("n{node}.out"), format!("n{target}.in{node}"));
            let id = format!("{from}-{to}");
            graph
                .edges
                .push(Edge::new(id, &from, &to, EdgeKind::Immediate));
        }
    }
    compile(graph).expect("it has no cycle")
}

/// Components in a row.
const COMPONENTS: usize = 100;

/// The epoch machinery: channels, triggers, commits; without a trace.
pub fn messages(epochs: u64) -> Sample {
    let mut graph = Graph::new("row");
    graph.lanes.push(Lane::new("main", LaneKind::EventLoop));
    graph
        .components
        .push(Component::new("c0", "topoexec.boundary.FrameInput", "main"));
    for number in 1..COMPONENTS {
        let mut component =
            Component::new(format!("c{number}"), "topoexec.transforms.Identity", "main");
        component.trigger.kind = TriggerKind::AnyInput;
        component.trigger.inputs.push("in".to_owned());
        let (from, to) = (format!("c{}.out", number - 1), format!("c{number}.in"));
        graph.edges.push(Edge::new(
            format!("e{number}"),
            &from,
            &to,
            EdgeKind::Immediate,
        ));
        graph.components.push(component);
    }
    let prepared = Prepared::new(graph, Registry::built_in()).expect("it compiles");
    let messages = epochs * (COMPONENTS as u64 - 1);
    Sample::per_operation(messages, || {
        let prepared = prepared.clone();
        time(|| {
            let options = RunOptions {
                order_capacity: 0,
                ..RunOptions::steps(epochs)
            };
            let result = Windlass::run_on_worker(async move { prepared.run(options).await });
            let delivered = result.metrics.sum("runtime.channel.delivery_count");
            assert_eq!(delivered as u64, messages);
        })
    })
}

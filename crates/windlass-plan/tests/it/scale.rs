//! The largest graphs are loaded and checked in reasonable time.

use std::time::{Duration, Instant};

use windlass_plan::check::Level;
use windlass_plan::lint::lint;
use windlass_plan::model::{
    Component, CompositeLoop, Edge, EdgeKind, Graph, Lane, LaneKind, LoopKind, LoopPolicy,
};

use crate::support::{catalog, check, load_text};

/// Generous: a build without optimisation on a slow machine.
const BOUND: Duration = Duration::from_secs(10);

#[test]
fn the_largest_file_loads_and_checks() {
    let mut text =
        "schema_version: 1\ngraph: {name: g}\nlanes: {m: {type: event_loop}}\ncomponents:\n"
            .to_owned();
    for n in 0..4096 {
        text.push_str(&format!(
            "- {{id: c{n}, type: windlass.transform.Join, execution: {{lane: m}}}}\n"
        ));
    }
    text.push_str("edges:\n");
    for n in 0..8192 {
        let (to, port) = ((n / 2 + 1) % 4096, ["left", "right"][n % 2]);
        text.push_str(&format!(
            "- {{id: e{n}, from: c{}.out, to: c{to}.{port}, kind: immediate}}\n",
            n / 2
        ));
    }
    assert!(text.len() <= 1 << 20);
    let start = Instant::now();
    let loaded = load_text(&text).expect("a valid file");
    let found = check(&loaded.graph, Level::Registry);
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    assert!(
        found.len() < 10,
        "one circle, no boundaries: {}",
        found.len()
    );
}

#[test]
fn the_largest_graphs_that_are_all_wrong_check() {
    let mut graph = Graph::new("g");
    graph.lanes.push(Lane::new("m", LaneKind::ThreadPool));
    for n in 0..4096 {
        let mut component = Component::new(
            format!("component_{n}"),
            format!("type_{n}"),
            format!("lane_{n}"),
        );
        component.depends_on = vec![
            format!("component_{}", (n + 1) % 4096),
            format!("compnent_{n}"),
        ];
        graph.components.push(component);
    }
    for n in 0..8192 {
        let (from, to) = (
            format!("componet_{n}.out"),
            format!("component_{}.in", n % 7),
        );
        graph
            .edges
            .push(Edge::new("e", &from, &to, EdgeKind::State));
    }
    for n in 0..1024 {
        let own = format!("component_{n}");
        graph.edges[n] = Edge::new(
            "e",
            &format!("{own}.out"),
            &format!("{own}.in"),
            EdgeKind::Immediate,
        );
        graph.loops.push(CompositeLoop {
            id: own.clone(),
            components: vec![own],
            policy: LoopPolicy::new(LoopKind::FixedPoint),
        });
    }
    let start = Instant::now();
    let found = check(&graph, Level::Registry);
    lint(&graph, &catalog());
    assert!(start.elapsed() < BOUND, "{:?}", start.elapsed());
    assert!(found.len() > 10_000);
}

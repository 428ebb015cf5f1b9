//! A file of any bytes is loaded, checked, linted, compiled, drawn, explained and run: no panic, no
//! hang, no flood.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_graph::check::{Level, check};
use windlass_graph::component::{Catalog, Registry};
use windlass_graph::diagnostic::Severity;
use windlass_graph::lint::lint;
use windlass_graph::model::{Component, CompositeLoop, Edge, Graph, Readers};
use windlass_graph::render::Picture;
use windlass_graph::run::{ConfigTransaction, Snapshot};
use windlass_graph::{LoadOptions, Prepared, RunOptions, load};
use windlass_runtime::Runtime;

/// Epochs of a run: enough for what is deferred to come, and for `previous_tick` behind it.
const STEPS: u64 = 3;
/// What is larger is not run: the point is what a run does, not how long it takes.
const MOST_COMPONENTS: usize = 64;
const MOST_EDGES: usize = 128;
const MOST_THREADS: usize = 8;
const MOST_KEPT: usize = 16;
const MOST_PASSES: u64 = 16;
const MOST_BYTES: u64 = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let loaded = match load(bytes, &LoadOptions::default()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            assert!(!errors.problems.is_empty(), "refused without a reason");
            assert!(!errors.to_string().is_empty());
            return;
        }
    };
    let graph = loaded.graph;
    let mut registry = Registry::built_in();
    check(&graph, &registry, Level::Registry);
    lint(&graph, &registry);
    for component in &graph.components {
        if !registry.contains(&component.type_name) {
            registry.stub(component.type_name.as_str());
        }
    }
    // A file that is in order without stubs stays so with them, so this is the wider net.
    let found = check(&graph, &registry, Level::Schema);
    for finding in &found {
        assert!(!finding.to_string().is_empty());
        if let Some(span) = loaded.sources.span_of(&finding.graph_path) {
            loaded.sources.line_col(span.start);
        }
    }
    if found
        .iter()
        .any(|finding| finding.severity() == Severity::Error)
    {
        return;
    }
    let runs = is_small(&graph);
    let prepared = match Prepared::new(graph, registry.clone()) {
        Ok(prepared) => prepared,
        Err(error) => panic!("the checks found no error, and it does not compile: {error}"),
    };
    let plan = prepared.plan();
    plan.to_json(|name| Some(registry.descriptor(name)?.boundary_role));
    for &picture in Picture::ALL {
        plan.draw(picture);
    }
    plan.explain();
    if runs {
        run(&prepared);
    }
});

/// Runs it twice, which gives the same, and once more from where it ended.
fn run(prepared: &Prepared) {
    let options = |restore: Option<Snapshot>| RunOptions {
        steps: Some(STEPS),
        trace: true,
        trace_capacity: 1 << 12,
        order_capacity: 1 << 12,
        snapshot: true,
        restore,
        ..RunOptions::default()
    };
    let go = |restore| {
        let run = prepared.begin(options(restore));
        let graph = &prepared.plan().graph;
        let several = graph
            .edges
            .iter()
            .filter(|edge| edge.policy.readers == Readers::Multi);
        let taps: Vec<_> = several.map(|edge| run.control().tap(&edge.id)).collect();
        assert!(
            taps.iter().all(Result::is_ok),
            "an edge for several readers has no room for one"
        );
        for component in &graph.components {
            let same =
                ConfigTransaction::new().set(component.id.as_str(), component.config.clone());
            assert!(run.control().reconfigure(same).is_ok());
        }
        Runtime::simulated(1).block_on(run.run())
    };
    let first = go(None);
    let again = go(None);
    assert_eq!(first.order, again.order, "one seed is one history");
    assert_eq!(first.stop_reason, again.stop_reason);
    assert!(
        first.is_ok() || !first.errors.is_empty(),
        "failed without a reason"
    );
    for error in &first.errors {
        assert!(!error.message.starts_with("panicked"), "{error}");
    }
    first.metrics.to_json();
    let sink = &mut std::io::sink();
    assert!(first.trace.write_json(sink).is_ok());
    assert!(first.trace.write_chrome(sink).is_ok());
    go(first.snapshot);
}

fn is_small(graph: &Graph) -> bool {
    let threads: usize = graph.lanes.iter().map(|lane| lane.width()).sum();
    let kept = |edge: &Edge| edge.policy.capacity <= MOST_KEPT;
    let passes = |l: &CompositeLoop| l.policy.max_iterations <= MOST_PASSES;
    let bytes = |component: &Component| {
        let bytes = component
            .config
            .get("bytes")
            .and_then(|bytes| bytes.as_u64());
        bytes.is_none_or(|bytes| bytes <= MOST_BYTES)
    };
    graph.components.len() <= MOST_COMPONENTS
        && graph.edges.len() <= MOST_EDGES
        && threads <= MOST_THREADS
        && graph.edges.iter().all(kept)
        && graph.loops.iter().all(passes)
        && graph.components.iter().all(bytes)
}

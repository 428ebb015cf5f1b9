//! Windlass's graphs: compiled plans run by the workers, and the whole epoch machinery in one task.

use std::iter;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use windlass::graph::compile::{Plan, compile};
use windlass::graph::component::{Descriptor, Registry};
use windlass::graph::model::{Component, Edge, EdgeKind, Graph, Lane, LaneKind, TriggerKind};
use windlass::graph::observe::{Level, ObserveOptions, observe};
use windlass::graph::{Prepared, RunOptions};

use super::AsyncPeer;
use super::windlass::Windlass;
use crate::sample::{Sample, time};
use crate::stats;
use crate::workload::Workload;
use crate::workloads::graphs;

/// A compiled graph, `rounds` times.
pub fn plan(workload: Workload, rounds: u64) -> Sample {
    let plan = compiled(&graphs::shape(workload));
    let nodes = plan.regions.len();
    graphs::per_node(nodes, rounds, || {
        let mut flow = windlass::graph::flow(&plan);
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
    let types = iter::once("windlass.boundary.FrameInput").chain(iter::repeat_n(
        "windlass.transform.Identity",
        COMPONENTS - 1,
    ));
    add_row(&mut graph, "c", "main", types);
    let prepared = Prepared::new(graph, Registry::built_in()).expect("it compiles");
    let messages = epochs * (COMPONENTS as u64 - 1);
    let options = || RunOptions {
        order_capacity: 0,
        ..RunOptions::steps(epochs)
    };
    let sample = Sample::per_operation(messages, || timed(&prepared, options(), messages));
    observed(
        sample,
        || timed(&prepared, options(), messages),
        |level| {
            let (observer, events) = observe(ObserveOptions {
                level,
                ..ObserveOptions::default()
            });
            // Somebody collects what there is.
            let collector =
                std::thread::spawn(move || while windlass::block_on(events.next()).is_some() {});
            let options = RunOptions {
                observer: Some(observer),
                ..options()
            };
            let took = timed(&prepared, options, messages);
            collector.join().expect("it ends with the run");
            took
        },
    )
}

/// Adds what it costs to be observed, in percent of the fastest run that is not: the fastest of a
/// few, which take turns.
fn observed(
    mut sample: Sample,
    mut alone: impl FnMut() -> Duration,
    mut run: impl FnMut(Level) -> Duration,
) -> Sample {
    const TURNS: usize = 9;
    let levels = [Level::Off, Level::Summary, Level::Detailed];
    let mut best = [Duration::MAX; 4];
    for _ in 0..TURNS {
        best[0] = best[0].min(alone());
        for (best, level) in best[1..].iter_mut().zip(levels) {
            *best = (*best).min(run(level));
        }
    }
    for (took, level) in best[1..].iter().zip(levels) {
        let percent = (took.as_secs_f64() / best[0].as_secs_f64() - 1.0) * 100.0;
        sample = sample.with(&format!("observed {level} %"), percent);
    }
    sample
}

/// Adds components in a row: the first one begins, each other runs for what the one before it
/// publishes.
fn add_row<'a>(
    graph: &mut Graph,
    name: &str,
    lane: &str,
    types: impl IntoIterator<Item = &'a str>,
) {
    for (number, type_name) in types.into_iter().enumerate() {
        let id = format!("{name}{number}");
        let mut component = Component::new(&*id, type_name, lane);
        if let Some(before) = number.checked_sub(1) {
            component.trigger.kind = TriggerKind::AnyInput;
            component.trigger.inputs.push("in".to_owned());
            let (from, to) = (format!("{name}{before}.out"), format!("{id}.in"));
            let edge = format!("{from}-{to}");
            graph
                .edges
                .push(Edge::new(edge, &from, &to, EdgeKind::Immediate));
        }
        graph.components.push(component);
    }
}

/// How long a run takes that delivers so many messages.
fn timed(prepared: &Prepared, options: RunOptions, messages: u64) -> Duration {
    let prepared = prepared.clone();
    time(|| {
        let result = Windlass::run_on_worker(async move { prepared.run(options).await });
        assert!(result.is_ok(), "{:?}", result.errors);
        let delivered = result.metrics.sum("runtime.channel.delivery_count");
        assert_eq!(delivered as u64, messages);
    })
}

/// Chains that have nothing to do with each other, and the components of each that work.
const CHAINS: usize = 8;
const LINKS: usize = 4;
/// The threads of the lane.
const THREADS: usize = 2;
/// What each of these components works.
const WORK: Duration = Duration::from_millis(1);
/// Runs of each kind that are timed; they take turns.
const PAIRS: usize = 3;

/// Regions that overlap: how many times faster an epoch is than the same on the same threads, one
/// region after another.
pub fn parallel(epochs: u64) -> Sample {
    let mut graph = Graph::new("chains");
    let mut lane = Lane::new("pool", LaneKind::ThreadPool);
    lane.max_threads = THREADS;
    graph.lanes.push(lane);
    let types = iter::once("windlass.boundary.Input")
        .chain(iter::repeat_n("bench.Work", LINKS))
        .chain(iter::once("windlass.boundary.Output"));
    for chain in 0..CHAINS {
        add_row(&mut graph, &format!("chain{chain}."), "pool", types.clone());
    }
    let mut registry = Registry::built_in();
    registry.function("bench.Work", Descriptor::new().open_ports(), |invocation| {
        work();
        invocation.publish_to("out", invocation.epoch() as i64);
        Ok(())
    });
    let prepared = Prepared::new(graph, registry).expect("it compiles");
    let messages = epochs * (CHAINS * (LINKS + 1)) as u64;
    let per_second = |overlap: bool| {
        let options = RunOptions {
            overlap,
            ..RunOptions::steps(epochs)
        };
        epochs as f64 / timed(&prepared, options, messages).as_secs_f64()
    };
    per_second(true);
    let (mut overlapped, mut one_by_one): (Vec<f64>, Vec<f64>) = (0..PAIRS)
        .map(|_| (per_second(true), per_second(false)))
        .unzip();
    stats::sort(&mut overlapped);
    stats::sort(&mut one_by_one);
    let (overlapped, one_by_one) = (stats::median(&overlapped), stats::median(&one_by_one));
    let perfect = THREADS as f64 / ((CHAINS * LINKS) as f64 * WORK.as_secs_f64());
    Sample::of(overlapped / one_by_one)
        .with("epochs/s", overlapped)
        .with("one by one", one_by_one)
        .with("of perfect", overlapped / perfect)
}

/// Spins until this thread has had its share of a CPU. By the clock on the wall two threads would
/// be done at once on one CPU, too.
fn work() {
    let used = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    };
    let end = used() + WORK;
    while used() < end {
        std::hint::spin_loop();
    }
}

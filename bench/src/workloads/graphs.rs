//! Graphs with empty bodies: what it costs to run a node after those it waits for. Each graph is
//! made once and run `size` times.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::sample::Sample;
use crate::workload::Workload;

const CHAIN: usize = 1_000;
const SIDE: usize = 32;
const TREE: usize = 1 << 15;

/// Which nodes wait for each node.
pub type Shape = Vec<Vec<usize>>;

/// The shape that a workload runs.
pub fn shape(workload: Workload) -> Shape {
    match workload {
        Workload::GraphChain => (1..=CHAIN)
            .map(|next| if next < CHAIN { vec![next] } else { Vec::new() })
            .collect(),
        Workload::GraphWave => (0..SIDE * SIDE).map(right_and_below).collect(),
        Workload::GraphTree => (0..TREE)
            .map(|node| [2 * node + 1, 2 * node + 2])
            .map(|children| children.into_iter().filter(|&child| child < TREE).collect())
            .collect(),
        other => unreachable!("{other:?} has no shape"),
    }
}

fn right_and_below(node: usize) -> Vec<usize> {
    let (row, column) = (node / SIDE, node % SIDE);
    let right = (column + 1 < SIDE).then_some(node + 1);
    let below = (row + 1 < SIDE).then_some(node + SIDE);
    right.into_iter().chain(below).collect()
}

/// What is called for each node.
pub type NodeBody<'a> = &'a (dyn Fn(usize) + Sync);

/// Runs a graph `rounds` times where it is called, on a worker: `once` runs it once. All nodes
/// start at node 0.
pub fn rounds(nodes: usize, rounds: u64, mut once: impl FnMut(NodeBody<'_>)) -> Duration {
    let ended = AtomicUsize::new(0);
    // Once with a body that counts: every node runs, and only once.
    once(&|_| {
        ended.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(ended.into_inner(), nodes, "a node was lost or ran twice");
    let start = Instant::now();
    for _ in 0..rounds {
        once(&|node| {
            black_box(node);
        });
    }
    start.elapsed()
}

/// The time per node.
pub fn per_node(nodes: usize, rounds: u64, pass: impl FnMut() -> Duration) -> Sample {
    Sample::per_operation(nodes as u64 * rounds, pass)
}

/// A graph for a peer that has none: counters, and the first node that becomes ready is run at
/// once.
pub struct Counted {
    nodes: Vec<Node>,
}

struct Node {
    missing: AtomicU32,
    expected: u32,
    targets: Vec<usize>,
}

impl Counted {
    pub fn new(shape: Shape) -> Counted {
        let mut expected = vec![0; shape.len()];
        shape
            .iter()
            .flatten()
            .for_each(|&target| expected[target] += 1);
        let nodes = shape.into_iter().zip(expected);
        Counted {
            nodes: nodes
                .map(|(targets, expected)| Node {
                    missing: AtomicU32::new(expected),
                    expected,
                    targets,
                })
                .collect(),
        }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Runs a node and what follows from it here; `spawn` is called with what others may run.
    pub fn walk(&self, node: usize, body: NodeBody<'_>, mut spawn: impl FnMut(usize)) {
        let mut at = Some(node);
        while let Some(node) = at.take() {
            body(node);
            for &target in &self.nodes[node].targets {
                if self.arrive(target)
                    && let Some(ready) = at.replace(target)
                {
                    spawn(ready);
                }
            }
        }
    }

    fn arrive(&self, node: usize) -> bool {
        let node = &self.nodes[node];
        if node.expected == 1 {
            return true;
        }
        let last = node.missing.fetch_sub(1, Ordering::AcqRel) == 1;
        if last {
            node.missing.store(node.expected, Ordering::Relaxed);
        }
        last
    }
}

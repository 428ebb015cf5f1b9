//! rayon, for the workloads that make sense for closures: it has no tasks that wait.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::future::block_on;

use super::{CLOSURES, GRAPHS, Job, Peer, cannot};
use crate::countdown::Countdown;
use crate::sample::{Sample, time};
use crate::workload::Workload;
use crate::workloads::graphs::{self, Counted, NodeBody};
use crate::workloads::{fork_join, idle, remote_wake, spawn, steal};

pub const PEER: Peer = Peer {
    name: "rayon",
    workloads: &[
        &[
            Workload::SpawnExternal,
            Workload::SpawnInternal,
            Workload::SpawnDetached,
            Workload::ChainedSpawn,
            Workload::RemoteWake,
            Workload::StealLatency,
            Workload::Idle,
        ],
        CLOSURES,
        GRAPHS,
    ],
    run,
};

fn run(job: Job) -> Sample {
    rayon::ThreadPoolBuilder::new()
        .num_threads(job.workers)
        .build_global()
        .expect("rayon starts");
    let size = job.size;
    match job.workload {
        Workload::SpawnExternal => Sample::per_operation(size, || {
            let mut results = vec![u64::MAX; size as usize];
            time(|| {
                rayon::in_place_scope(|scope| spawn_all(scope, &mut results));
                spawn::check_sum(size, results.iter().sum());
            })
        }),
        Workload::SpawnInternal => Sample::per_operation(size, || {
            let mut results = vec![u64::MAX; size as usize];
            time(|| {
                rayon::scope(|scope| spawn_all(scope, &mut results));
                spawn::check_sum(size, results.iter().sum());
            })
        }),
        Workload::SpawnDetached => Sample::per_operation(size, || time(|| spawn_detached(size))),
        Workload::ChainedSpawn => Sample::per_operation(size, || time(|| chain(size))),
        workload if GRAPHS.contains(&workload) => graph(workload, size),
        Workload::ForkJoin => {
            fork_join::joins(size, |n| rayon::scope(|_| fork_join::timed(|| fib(n))))
        }
        Workload::CpuTasks => rayon::scope(|_| {
            fork_join::batches(size, |sum| {
                rayon::scope(|scope| {
                    for seed in 0..fork_join::BATCH {
                        scope.spawn(move |_| fork_join::add(sum, seed));
                    }
                });
            })
        }),
        Workload::RemoteWake => Sample::latencies(&wake(size)),
        Workload::StealLatency => steal::sample(&steal_latencies(size)),
        Workload::Idle => idle::after(size, || spawn_detached(idle::WARM_UP)),
        other => cannot(other),
    }
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one, two) = rayon::join(|| fib(n - 1), || fib(n - 2));
    one + two
}

/// rayon joins through a scope; each closure leaves its result where a join handle would have
/// brought it.
fn spawn_all<'scope>(scope: &rayon::Scope<'scope>, results: &'scope mut [u64]) {
    for (i, result) in results.iter_mut().enumerate() {
        scope.spawn(move |_| *result = i as u64);
    }
}

/// A closure cannot wait, so the last one wakes the main thread instead of the spawner.
fn spawn_detached(count: u64) {
    let countdown = Arc::new(Countdown::from(count as usize));
    let spawner = Arc::clone(&countdown);
    rayon::spawn(move || {
        for _ in 0..count {
            let countdown = Arc::clone(&spawner);
            rayon::spawn(move || countdown.done());
        }
    });
    block_on(countdown.finished());
}

fn chain(depth: u64) {
    fn link(left: u64, end: Arc<Countdown>) {
        rayon::spawn(move || {
            if left == 1 {
                end.done()
            } else {
                link(left - 1, end)
            }
        });
    }
    let end = Arc::new(Countdown::from(1));
    link(depth, Arc::clone(&end));
    block_on(end.finished());
}

/// There is no pending closure to wake; a plain thread spawns one.
fn wake(repetitions: u64) -> Vec<Duration> {
    let (sender, receiver) = mpsc::channel();
    for _ in 0..repetitions {
        thread::sleep(remote_wake::IDLE);
        let sender = sender.clone();
        let rung = std::time::Instant::now();
        rayon::spawn(move || {
            sender
                .send(rung.elapsed())
                .expect("the main thread listens")
        });
    }
    drop(sender);
    let latencies: Vec<Duration> = receiver.iter().collect();
    assert_eq!(latencies.len() as u64, repetitions);
    latencies
}

fn steal_latencies(repetitions: u64) -> Vec<Option<Duration>> {
    let (sender, receiver) = mpsc::channel();
    rayon::spawn(move || {
        let latencies = (0..repetitions).map(|_| {
            steal::stay_busy();
            let attempt = Arc::new(steal::Attempt::default());
            let theirs = Arc::clone(&attempt);
            rayon::in_place_scope(|scope| {
                attempt.begin();
                scope.spawn(move |_| theirs.stolen());
                attempt.spin()
            })
        });
        sender
            .send(latencies.collect())
            .expect("the main thread listens");
    });
    receiver.recv().expect("the worker answers")
}

fn graph(workload: Workload, rounds: u64) -> Sample {
    let graph = Counted::new(graphs::shape(workload));
    graphs::per_node(graph.len(), rounds, || {
        rayon::scope(|_| {
            graphs::rounds(graph.len(), rounds, |body| {
                rayon::in_place_scope(|scope| walk(scope, &graph, 0, body));
            })
        })
    })
}

fn walk<'a>(scope: &rayon::Scope<'a>, graph: &'a Counted, node: usize, body: NodeBody<'a>) {
    graph.walk(node, body, |ready| {
        scope.spawn(move |scope| walk(scope, graph, ready, body));
    });
}

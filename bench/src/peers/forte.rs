//! forte's thread pool, spawning futures and closures.

use forte::{Scope, Task, ThreadPool, Worker};

use super::{ASYNC, AsyncPeer, CLOSURES, GRAPHS, Job, Peer, run_async};
use crate::sample::Sample;
use crate::workload::Workload;
use crate::workloads::fork_join;
use crate::workloads::graphs::{self, Counted, NodeBody};

pub const PEER: Peer = Peer {
    name: "forte",
    workloads: &[ASYNC, CLOSURES, GRAPHS],
    run,
};

fn run(job: Job) -> Sample {
    match job.workload {
        Workload::ForkJoin => {
            Forte::start(job.workers);
            fork_join::joins(job.size, |n| {
                Forte::run_on_worker(async move {
                    let timed = Worker::map_current(|worker| fork_join::timed(|| fib(worker, n)));
                    timed.expect("it runs on a worker")
                })
            })
        }
        Workload::CpuTasks => {
            Forte::start(job.workers);
            let size = job.size;
            Forte::run_on_worker(async move { fork_join::batches(size, batch) })
        }
        workload if GRAPHS.contains(&workload) => {
            Forte::start(job.workers);
            graph(workload, job.size)
        }
        _ => run_async::<Forte>(job),
    }
}

fn fib(worker: &Worker, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one, two) = worker.join(|worker| fib(worker, n - 1), |worker| fib(worker, n - 2));
    one + two
}

fn batch(sum: &std::sync::atomic::AtomicU64) {
    POOL.scope(|scope| {
        for seed in 0..fork_join::BATCH {
            scope.spawn(move |_: &Worker| fork_join::add(sum, seed));
        }
    });
}

fn graph(workload: Workload, rounds: u64) -> Sample {
    let graph: &'static Counted = Box::leak(Box::new(Counted::new(graphs::shape(workload))));
    graphs::per_node(graph.len(), rounds, || {
        Forte::run_on_worker(async move {
            graphs::rounds(graph.len(), rounds, |body| {
                POOL.scope(|scope| walk(scope, graph, 0, body));
            })
        })
    })
}

fn walk<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    graph: &'env Counted,
    node: usize,
    body: NodeBody<'env>,
) {
    graph.walk(node, body, |ready| {
        scope.spawn(move |_: &Worker| walk(scope, graph, ready, body));
    });
}

static POOL: ThreadPool = ThreadPool::new();

struct Forte;

impl AsyncPeer for Forte {
    type Join<T: Send + 'static> = Task<T>;

    fn start(workers: usize) {
        assert_eq!(
            POOL.resize_to(workers),
            workers,
            "forte starts all its workers"
        );
    }

    /// Outside the pool this only parks: the main thread does not become a worker.
    fn block_on<F>(future: F) -> F::Output
    where
        F: Future + Send,
        F::Output: Send,
    {
        POOL.block_on(future)
    }

    fn spawn<F>(future: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        POOL.spawn(future)
    }

    fn spawn_detached<F>(future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        POOL.spawn(future).detach();
    }

    /// forte's own `yield_now` runs other work inside the caller; for a future it says to wake and
    /// return.
    fn yield_now() -> impl Future<Output = ()> + Send {
        futures_lite::future::yield_now()
    }
}

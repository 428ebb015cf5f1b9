//! chili: fork-join and nothing else. The thread that asks is one of its workers.

use std::num::NonZero;

use chili::{Config, Scope, ThreadPool};

use super::{Job, Peer, cannot};
use crate::sample::Sample;
use crate::workload::Workload;
use crate::workloads::fork_join;

pub const PEER: Peer = Peer {
    name: "chili",
    workloads: &[&[Workload::ForkJoin]],
    run,
};

fn run(job: Job) -> Sample {
    let pool = ThreadPool::with_config(Config {
        thread_count: NonZero::new(job.workers),
        ..Config::default()
    });
    match job.workload {
        Workload::ForkJoin => fork_join::joins(job.size, |n| {
            let mut scope = pool.scope();
            fork_join::timed(|| fib(&mut scope, n))
        }),
        other => cannot(other),
    }
}

fn fib(scope: &mut Scope<'_>, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (one, two) = scope.join(|scope| fib(scope, n - 1), |scope| fib(scope, n - 2));
    one + two
}

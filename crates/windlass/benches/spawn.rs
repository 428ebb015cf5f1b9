//! Starting tasks of each kind and waiting for their ends.

mod support;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use windlass::{coroutine, spawn, spawn_blocking, task};

use support::{measure, runtime};

const TASKS: u64 = 1_000;
const SUM: u64 = TASKS * (TASKS - 1) / 2;

fn main() {
    divan::main();
}

/// A task spawns others and awaits them in order.
#[divan::bench(max_time = 5)]
fn tasks(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(TASKS), SUM, || async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|value| spawn(async move { black_box(value) }))
            .collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await.expect("it ends");
        }
        sum
    });
}

/// Each task is spawned by the one before and awaited by it.
#[divan::bench(max_time = 5)]
fn chain(bencher: Bencher<'_, '_>) {
    fn link(left: u64) -> task::JoinHandle<u64> {
        spawn(async move {
            match left {
                0 => 0,
                _ => link(left - 1).await.expect("it ends") + 1,
            }
        })
    }

    measure(bencher, ItemsCount::new(TASKS), TASKS, || async {
        link(TASKS).await.expect("it ends")
    });
}

/// Tasks that yield ten times each.
#[divan::bench(max_time = 5)]
fn yielding(bencher: Bencher<'_, '_>) {
    const YIELDS: u64 = 10;
    let yields = TASKS * YIELDS;
    measure(bencher, ItemsCount::new(yields), yields, || async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                spawn(async {
                    for _ in 0..YIELDS {
                        task::yield_now().await;
                    }
                    YIELDS
                })
            })
            .collect();
        let mut sum = 0;
        for task in tasks {
            sum += task.await.expect("it ends");
        }
        sum
    });
}

/// Coroutines, which have stacks.
#[divan::bench(max_time = 5)]
fn coroutines(bencher: Bencher<'_, '_>) {
    measure(bencher, ItemsCount::new(TASKS), SUM, || async {
        let started: Vec<_> = (0..TASKS)
            .map(|value| coroutine::spawn(move || black_box(value)))
            .collect();
        let mut sum = 0;
        for coroutine in started {
            sum += coroutine.await.expect("it ends");
        }
        sum
    });
}

/// Closures on blocking threads, one after the other.
#[divan::bench(max_time = 5)]
fn blocking(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    bencher.bench_local(|| {
        let answer = runtime.block_on(async { spawn_blocking(|| black_box(7)).await });
        assert_eq!(answer.expect("it ends"), 7);
    });
}

//! Fork and join, without a cutoff. With tasks: fib(n) spawns fib(n - 1) and fib(n - 2) and awaits
//! both. With closures: a join of the two. And batches of short closures, spawned and waited for.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::peers::AsyncPeer;
use crate::sample::Sample;

pub fn tasks<P: AsyncPeer>(n: u64) -> Sample {
    Sample::per_operation(task_count(n), || {
        P::run_on_worker(async move {
            let start = Instant::now();
            assert_eq!(fib::<P>(black_box(n)).await, fib_of(n));
            start.elapsed()
        })
    })
}

/// A plain function that returns the handle: the recursion goes through `P::Join` and needs no box.
fn fib<P: AsyncPeer>(n: u64) -> P::Join<u64> {
    P::spawn(async move {
        if n < 2 {
            return n;
        }
        let (one, two) = (fib::<P>(n - 1), fib::<P>(n - 2));
        one.await + two.await
    })
}

/// fib by joins: `compute` runs it on a worker and gives the result and the time it took.
pub fn joins(n: u64, compute: impl Fn(u64) -> (u64, Duration)) -> Sample {
    Sample::per_operation(join_count(n), || {
        let (result, time) = compute(black_box(n));
        assert_eq!(result, fib_of(n));
        time
    })
}

/// Times `work` where it is called.
pub fn timed(work: impl FnOnce() -> u64) -> (u64, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Closures in a batch of `cpu_tasks`.
pub const BATCH: u64 = 1_000;

/// Batches of short closures: `batch` runs one, each of whose closures adds what [`crunch`] gives
/// to the sum.
pub fn batches(count: u64, batch: impl Fn(&AtomicU64)) -> Sample {
    let expected = (0..BATCH).map(crunch).fold(0, u64::wrapping_add);
    Sample::per_operation(count * BATCH, || {
        let start = Instant::now();
        for _ in 0..count {
            let sum = AtomicU64::new(0);
            batch(&sum);
            assert_eq!(
                sum.into_inner(),
                expected,
                "a closure was lost or ran twice"
            );
        }
        start.elapsed()
    })
}

/// About 50 ns of arithmetic, of which nothing can be left out.
pub fn crunch(seed: u64) -> u64 {
    (0..16).fold(black_box(seed) | 1, |x, step| {
        (x ^ (x >> 7))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .wrapping_add(step)
    })
}

/// One closure of a batch.
pub fn add(sum: &AtomicU64, seed: u64) {
    sum.fetch_add(crunch(seed), Ordering::Relaxed);
}

fn fib_of(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// How many joins fib(n) makes: one per call that is no leaf.
fn join_count(n: u64) -> u64 {
    fib_of(n + 1) - 1
}

/// How many tasks fib(n) spawns, itself included.
fn task_count(n: u64) -> u64 {
    2 * fib_of(n + 1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_of_fib_are_counted() {
        fn count(n: u64) -> u64 {
            if n < 2 {
                1
            } else {
                1 + count(n - 1) + count(n - 2)
            }
        }
        assert_eq!(
            (0..12).map(task_count).collect::<Vec<_>>(),
            (0..12).map(count).collect::<Vec<_>>()
        );
        assert_eq!(
            (1..12).map(|n| 2 * join_count(n) + 1).collect::<Vec<_>>(),
            (1..12).map(count).collect::<Vec<_>>()
        );
        assert_eq!(fib_of(25), 75_025);
    }
}

//! Fork and join with tasks: fib(n) spawns fib(n - 1) and fib(n - 2) and awaits both, without a cutoff.

use std::hint::black_box;
use std::time::Instant;

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

fn fib_of(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
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
        assert_eq!(fib_of(25), 75_025);
    }
}

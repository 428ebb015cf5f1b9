//! Work for the processor, in parallel: recursion, slices and scopes.

mod support;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use windlass::fork_join::{join, par_map, scope};

use support::measure;

fn main() {
    divan::main();
}

/// A join for each call of a function that does next to nothing else.
#[divan::bench(max_time = 5)]
fn joins(bencher: Bencher<'_, '_>) {
    fn fib(n: u64) -> u64 {
        if n < 2 {
            return n;
        }
        let (a, b) = join(|| fib(n - 1), || fib(n - 2));
        a + b
    }
    // fib(n) makes fib(n + 1) - 1 joins.
    measure(bencher, ItemsCount::new(17_710_u64), 10_946, || async {
        fib(black_box(21))
    });
}

/// The same function of each of many numbers.
#[divan::bench(max_time = 5)]
fn map(bencher: Bencher<'_, '_>) {
    const NUMBERS: u64 = 100_000;
    let expected: u64 = (0..NUMBERS).map(mixed).fold(0, u64::wrapping_add);
    measure(bencher, ItemsCount::new(NUMBERS), expected, || async {
        let numbers: Vec<u64> = (0..black_box(NUMBERS)).collect();
        let mapped = par_map(&numbers[..], |&number| mixed(number));
        mapped.into_iter().fold(0, u64::wrapping_add)
    });
}

fn mixed(number: u64) -> u64 {
    (0..16).fold(number, |bits, _| {
        (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    })
}

/// Jobs of one scope, each of which writes a place of its own.
#[divan::bench(max_time = 5)]
fn scoped_jobs(bencher: Bencher<'_, '_>) {
    const JOBS: u64 = 1_000;
    measure(
        bencher,
        ItemsCount::new(JOBS),
        JOBS * (JOBS - 1) / 2,
        || async {
            let mut places = vec![0; JOBS as usize];
            scope(|scope| {
                for (place, number) in places.iter_mut().zip(0..) {
                    scope.spawn(move |_| *place = black_box(number));
                }
            });
            places.iter().sum::<u64>()
        },
    );
}

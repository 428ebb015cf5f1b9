//! Work for the processor, in parallel, on the runtime's own workers:
//! `cargo run --release --example par_map`.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it shows real time to a person"
)]

use std::time::{Duration, Instant};

use windlass::fork_join::{join, par_map};
use windlass::{Runtime, time};

const WIDTH: usize = 96;
const HEIGHT: usize = 36;

/// How soon a point leaves the Mandelbrot set.
fn steps(index: usize) -> u32 {
    let (x, y) = (index % WIDTH, index / WIDTH);
    let (re, im) = (
        x as f64 / WIDTH as f64 * 3.2 - 2.2,
        y as f64 / HEIGHT as f64 * 2.4 - 1.2,
    );
    let (mut a, mut b, mut steps) = (0.0, 0.0, 0);
    while a * a + b * b < 4.0 && steps < 20_000 {
        (a, b) = (a * a - b * b + re, 2.0 * a * b + im);
        steps += 1;
    }
    steps
}

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = join(|| fib(n - 1), || fib(n - 2));
    a + b
}

fn main() -> windlass::Result<()> {
    let runtime = Runtime::builder().workers(2).build()?;
    let _entered = runtime.enter();

    // A task that wants to run every millisecond, beside all this.
    let ticker = runtime.spawn(async {
        let (mut ticks, mut latest) = (0, Duration::ZERO);
        loop {
            let began = Instant::now();
            time::sleep(Duration::from_millis(1)).await;
            latest = latest.max(began.elapsed());
            ticks += 1;
            if ticks == 100 {
                return latest;
            }
        }
    });

    let began = Instant::now();
    let picture = par_map(0..WIDTH * HEIGHT, steps);
    let took = began.elapsed();
    for row in picture.chunks(WIDTH) {
        let line: String = row
            .iter()
            .map(|steps| match steps {
                0..=3 => ' ',
                4..=9 => '.',
                10..=99 => '+',
                _ => '#',
            })
            .collect();
        println!("{line}");
    }
    println!("par_map: {took:?}");

    let began = Instant::now();
    println!("fib(27) = {} by joins: {:?}", fib(27), began.elapsed());
    println!(
        "the ticker was late by {:?} at most",
        runtime.block_on(ticker)?
    );
    Ok(())
}

//! What recording costs: yields of 200 tasks under each mode, interleaved.
//! `cargo run --release -p windlass-core --example recording_cost`

use windlass_core::observe::Recording;
use windlass_core::sched::pool::{Config, Hooks, Pool};
use windlass_core::sync::clock;
use windlass_core::task::{FutureBody, Options, SpawnRequest, yield_now};

const TASKS: u64 = 200;
const YIELDS: u64 = 20_000;
const ROUNDS: usize = 15;

/// Nanoseconds per yield.
fn measure(pool: &Pool, recording: Recording) -> f64 {
    pool.set_recording(recording);
    let began = clock::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let body = async {
                for _ in 0..YIELDS {
                    yield_now().await;
                }
            };
            pool.spawn(SpawnRequest::new(FutureBody(body), Options::here()))
        })
        .collect();
    for task in tasks {
        assert!(windlass_core::block_on(task).is_ok());
    }
    (clock::now() - began) as f64 / (TASKS * YIELDS) as f64
}

fn main() {
    let config = Config {
        workers: 1,
        ..Config::default()
    };
    let pool = match Pool::start(config, Hooks::default(), None) {
        Ok(pool) => pool,
        Err(error) => panic!("the pool does not start: {error}"),
    };
    let modes = [Recording::Rare, Recording::Sampled, Recording::Full];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (mode, times) in modes.into_iter().zip(&mut times) {
            times.push(measure(&pool, mode));
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let [rare, sampled, full] = times.each_mut().map(median);
    println!("rare events only    {rare:6.2} ns a yield");
    println!(
        "sampled (default)   {sampled:6.2} ns a yield, {:+.1} %",
        (sampled / rare - 1.0) * 100.0
    );
    println!(
        "everything          {full:6.2} ns a yield, {:+.1} ns an event",
        full - rare
    );
    pool.shutdown(None);
}

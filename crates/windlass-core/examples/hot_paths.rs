//! Runs one hot path many times, for counting its instructions: `cargo xtask instructions`.
//!
//! One worker, so that the count does not depend on who steals what.

use windlass_core::sched::pool::{Config, Hooks, Pool};
use windlass_core::task::{FutureBody, Options, SpawnRequest, yield_now};

const TIMES: u64 = 200_000;

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let config = Config {
        workers: 1,
        seed: 1,
        ..Config::default()
    };
    let pool = match Pool::start(config, Hooks::default(), None) {
        Ok(pool) => pool,
        Err(error) => panic!("the pool does not start: {error}"),
    };
    let inner = pool.clone();
    let spawn = move |value: u64| {
        inner.spawn(SpawnRequest::new(
            FutureBody(async move { value }),
            Options::here(),
        ))
    };
    let sum = match path.as_str() {
        // Spawn and join, 100 at a time.
        "spawn" => pool.spawn(SpawnRequest::new(
            FutureBody(async move {
                let mut sum = 0;
                for _ in 0..TIMES / 100 {
                    let tasks: Vec<_> = (0..100).map(&spawn).collect();
                    for task in tasks {
                        sum += task.await.unwrap_or(0);
                    }
                }
                sum
            }),
            Options::here(),
        )),
        // A task that gives way.
        "yield" => pool.spawn(SpawnRequest::new(
            FutureBody(async {
                for _ in 0..TIMES {
                    yield_now().await;
                }
                TIMES
            }),
            Options::here(),
        )),
        // A task that suspends until another wakes it.
        "wake" => pool.spawn(SpawnRequest::new(
            FutureBody(async move {
                let mut sum = 0;
                for value in 0..TIMES {
                    sum += spawn(value).await.unwrap_or(0);
                }
                sum
            }),
            Options::here(),
        )),
        other => panic!("unknown path {other:?}; known: spawn, yield, wake"),
    };
    assert!(windlass_core::block_on(sum).unwrap_or(0) > 0);
    pool.shutdown(None);
}

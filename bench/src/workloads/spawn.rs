//! Spawning many small tasks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::countdown::Countdown;
use crate::peers::AsyncPeer;
use crate::sample::Sample;

/// Panics unless `sum` is that of 0, 1, ... `count - 1`, so that every task ran once and its result
/// came back.
pub fn check_sum(count: u64, sum: u64) {
    assert_eq!(sum, count * (count - 1) / 2, "a task was lost or ran twice");
}

/// From `block_on` on the main thread, all joined.
pub fn external<P: AsyncPeer>(count: u64) -> Sample {
    Sample::per_operation(count, || P::block_on(spawn_and_join::<P>(count)))
}

/// From a task on a worker, all joined.
pub fn internal<P: AsyncPeer>(count: u64) -> Sample {
    Sample::per_operation(count, || P::run_on_worker(spawn_and_join::<P>(count)))
}

async fn spawn_and_join<P: AsyncPeer>(count: u64) -> Duration {
    let start = Instant::now();
    let tasks: Vec<P::Join<u64>> = (0..count).map(|i| P::spawn(async move { i })).collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await;
    }
    check_sum(count, sum);
    start.elapsed()
}

/// Detached, from a task on a worker that waits until the last one wakes it.
pub fn detached<P: AsyncPeer>(count: u64) -> Sample {
    Sample::per_operation(count, || P::run_on_worker(spawn_detached::<P>(count)))
}

/// Spawns detached tasks and waits for them.
pub async fn spawn_detached<P: AsyncPeer>(count: u64) -> Duration {
    let start = Instant::now();
    let countdown = Arc::new(Countdown::from(count as usize));
    for _ in 0..count {
        let countdown = Arc::clone(&countdown);
        P::spawn_detached(async move { countdown.done() });
    }
    countdown.finished().await;
    start.elapsed()
}

//! Timers: creating and cancelling them, and how late they are.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::peers::TimePeer;
use crate::process::cpu_time;
use crate::sample::Sample;

/// Tasks that create and cancel at the same time.
const TASKS: u64 = 2;

/// Timers that are set and dropped again, as timeouts mostly are. `timers` per task.
pub fn cancel<P: TimePeer>(timers: u64) -> Sample {
    let many = Sample::per_operation(timers, || P::run_on_worker(cancel_on::<P>(TASKS, timers)));
    let one = P::run_on_worker(cancel_on::<P>(1, timers));
    many.with("one task", one.as_nanos() as f64 / timers as f64)
}

async fn cancel_on<P: TimePeer>(tasks: u64, timers: u64) -> Duration {
    let start = Instant::now();
    let tasks: Vec<P::Join<()>> = (0..tasks)
        .map(|_| P::spawn(create_and_drop::<P>(timers)))
        .collect();
    for task in tasks {
        task.await;
    }
    start.elapsed()
}

async fn create_and_drop<P: TimePeer>(timers: u64) {
    for number in 0..timers {
        // Ten to sixty seconds: on several levels of a wheel.
        let mut timer = pin!(P::sleep(Duration::from_millis(10_000 + number % 50_000)));
        poll_fn(|context| {
            assert!(timer.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        if number % 64 == 63 {
            P::yield_now().await;
        }
    }
}

/// Sleeps of 1 to 100 ms at once: how late they are (p50), and the CPU time that each costs.
pub fn sleep<P: TimePeer>(sleeps: u64) -> Sample {
    let before = cpu_time();
    let latencies = P::run_on_worker(async move {
        let tasks: Vec<P::Join<Duration>> = (0..sleeps)
            .map(|number| {
                let length = Duration::from_micros(1_000 + number * 7_919 % 99_000);
                P::spawn(async move {
                    let start = Instant::now();
                    P::sleep(length).await;
                    let took = start.elapsed();
                    assert!(took >= length, "a timer was early");
                    took - length
                })
            })
            .collect();
        let mut latencies = Vec::with_capacity(tasks.len());
        for task in tasks {
            latencies.push(task.await);
        }
        latencies
    });
    let cpu = (cpu_time() - before).as_nanos() as f64 / 1e3 / sleeps as f64;
    Sample::latencies(&latencies).with("cpu us", cpu)
}

/// The same, compared by the CPU time.
pub fn sleep_cpu<P: TimePeer>(sleeps: u64) -> Sample {
    let sample = sleep::<P>(sleeps);
    Sample::of(sample.extra["cpu us"]).with("late us", sample.value)
}

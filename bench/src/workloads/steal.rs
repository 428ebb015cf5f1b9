//! How long a task that a busy worker has spawned waits until another worker takes it.

use std::hint::spin_loop;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::peers::AsyncPeer;
use crate::sample::Sample;

/// How long the spawner spins without yielding. A task that has not begun by then counts as this.
const PATIENCE: Duration = Duration::from_millis(1);

pub fn tasks<P: AsyncPeer>(repetitions: u64) -> Sample {
    let latencies = P::run_on_worker(async move {
        let mut latencies = Vec::with_capacity(repetitions as usize);
        for _ in 0..repetitions {
            stay_busy();
            let attempt = Arc::new(Attempt::default());
            let theirs = Arc::clone(&attempt);
            attempt.begin();
            let task = P::spawn(async move { theirs.stolen() });
            latencies.push(attempt.spin());
            task.await;
        }
        latencies
    });
    sample(&latencies)
}

/// Keeps the worker busy for long enough that the others go to sleep.
pub fn stay_busy() {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        spin_loop();
    }
}

/// One spawn by a busy worker.
#[derive(Default)]
pub struct Attempt {
    spawned: OnceLock<Instant>,
    begun: OnceLock<Instant>,
}

impl Attempt {
    /// Just before the spawn.
    pub fn begin(&self) {
        self.spawned
            .set(Instant::now())
            .expect("an attempt begins once");
    }

    /// The first thing that the spawned task does.
    pub fn stolen(&self) {
        self.begun.set(Instant::now()).expect("a task runs once");
    }

    /// Spins until the task has begun, which it can only do on another worker. `None` if it does
    /// not in time.
    pub fn spin(&self) -> Option<Duration> {
        let spawned = *self.spawned.get().expect("the attempt has begun");
        while spawned.elapsed() < PATIENCE {
            if let Some(begun) = self.begun.get() {
                return Some(*begun - spawned);
            }
            spin_loop();
        }
        None
    }
}

/// The percentiles, and as the extra `missed` how many were not stolen in time.
pub fn sample(latencies: &[Option<Duration>]) -> Sample {
    let missed = latencies.iter().filter(|l| l.is_none()).count();
    let capped: Vec<Duration> = latencies.iter().map(|l| l.unwrap_or(PATIENCE)).collect();
    Sample::latencies(&capped).with("missed", missed as f64)
}

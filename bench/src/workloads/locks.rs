//! A lock that several tasks want.

use std::sync::Arc;
use std::time::Instant;

use crate::peers::{AsyncPeer, Locks};
use crate::sample::Sample;

/// Tasks that want the lock.
const TASKS: u64 = 8;

/// Each task takes the lock, adds one and lets go, again and again; per lock.
pub fn contended<L: Locks>(locks: u64) -> Sample {
    let each = locks / TASKS;
    Sample::per_operation(each * TASKS, || {
        L::Runtime::run_on_worker(async move {
            let lock = Arc::new(L::new());
            let start = Instant::now();
            let tasks: Vec<_> = (0..TASKS)
                .map(|_| {
                    let lock = lock.clone();
                    L::Runtime::spawn(async move {
                        for _ in 0..each {
                            L::add_one(&lock).await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await;
            }
            let took = start.elapsed();
            assert_eq!(L::count(&lock).await, each * TASKS);
            took
        })
    })
}

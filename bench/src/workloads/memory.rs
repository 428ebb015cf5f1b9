//! What a pending task costs in memory.

use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;

use crate::peers::AsyncPeer;
use crate::process;
use crate::sample::Sample;

/// Spawned at once before waiting until they have all been polled: the tasks are measured, not the
/// queues.
const BATCH: u64 = 1_000;

/// How many tasks have been polled.
static POLLED: AtomicU64 = AtomicU64::new(0);

/// Pends for ever and holds nothing.
///
/// Something else would hold its waker, so one is left alive: a detached task that nothing can wake
/// may be dropped.
pub struct Pending;

impl Future for Pending {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        mem::forget(context.waker().clone());
        polled();
        Poll::Pending
    }
}

/// Counts a task as pending from now on.
pub fn polled() {
    POLLED.fetch_add(1, Ordering::Relaxed);
}

pub fn tasks<P: AsyncPeer>(count: u64) -> Sample {
    P::block_on(async { growth(count, || P::spawn_detached(Pending)) })
}

/// Spawns pending tasks and returns by how much the resident set has grown, in bytes per task.
///
/// Some tasks come first and do not count: the threads they start and the first pages they touch
/// are not theirs.
pub fn growth(count: u64, spawn: impl Fn()) -> Sample {
    spawn_pending(0, BATCH, &spawn);
    let before = (process::resident_bytes(), allocations());
    spawn_pending(BATCH, count, &spawn);
    let bytes = process::resident_bytes().saturating_sub(before.0);
    let sample = Sample::of(bytes as f64 / count as f64);
    match (before.1, allocations()) {
        (Some(before), Some(after)) => {
            sample.with("allocations", (after - before) as f64 / count as f64)
        }
        _ => sample,
    }
}

fn spawn_pending(pending: u64, count: u64, spawn: &impl Fn()) {
    for i in 1..=count {
        spawn();
        if i % BATCH == 0 || i == count {
            while POLLED.load(Ordering::Relaxed) < pending + i {
                thread::yield_now();
            }
            assert_eq!(
                POLLED.load(Ordering::Relaxed),
                pending + i,
                "a pending task was polled twice"
            );
        }
    }
}

#[cfg(feature = "allocations")]
fn allocations() -> Option<u64> {
    Some(crate::allocations::count())
}

#[cfg(not(feature = "allocations"))]
fn allocations() -> Option<u64> {
    None
}

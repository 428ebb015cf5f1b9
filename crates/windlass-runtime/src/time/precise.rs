//! Waiting as exactly as the machine can, for control loops.
//!
//! An ordinary [`sleep`](crate::time::sleep) shares the driver with everybody else and is late by
//! the time it takes to wake a worker. These are for the few places where that is too much, and pay
//! with a core for the last stretch.

use std::time::Duration;

use windlass_core::sync::with_world;

use crate::os;
use crate::task::yield_now;
use crate::time::{Instant, sleep_until};

/// How long before its moment a task is woken, to be there in time.
const AHEAD: Duration = Duration::from_micros(200);
/// How long before its moment a thread stops sleeping and spins.
const SPIN: Duration = Duration::from_micros(20);

/// Waits until `deadline` on a task that gives way to others but does not sleep for the last
/// 200 us. Never early. Cancel-safe.
pub async fn sleep_until_precise(deadline: Instant) {
    if with_world(|world| world.is_some()) {
        // Virtual time is exact, and does not pass while somebody spins.
        return sleep_until(deadline).await;
    }
    sleep_until(deadline - AHEAD).await;
    while Instant::now() < deadline {
        yield_now().await;
    }
}

/// Blocks this thread until `deadline`, with the kernel's finest timer and a short spin at the end.
/// For threads of their own, such as a lane's; in a task it would block the worker.
///
/// # Panics
/// Inside a task.
pub fn block_until(deadline: Instant) {
    assert!(
        !windlass_core::context::in_task(),
        "block_until inside a task would block its worker: use sleep_until_precise there"
    );
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(SPIN) {
            Some(coarse) if !coarse.is_zero() => os::nanosleep(coarse),
            _ => std::hint::spin_loop(),
        }
    }
}

//! Waiting as exactly as the machine can, for control loops.
//!
//! An ordinary [`sleep`](crate::time::sleep) shares the driver with all other timers and is late by
//! the time it takes to wake a worker. These are for the few places where that is too much, and pay
//! with a core for the last stretch.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use windlass_core::sync::{Condvar, Mutex, with_world};

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
        // Virtual time is exact, and does not pass while a thread spins.
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

/// Blocks this thread until `deadline` as [`block_until`] does, or until `future` is ready: then
/// gives its output. For futures that have a thread of their own
/// ([`Builder::run_in`](crate::dispatch::Builder::run_in)).
///
/// # Panics
/// Inside a task.
pub fn block_until_or<F: Future>(deadline: Instant, future: F) -> Option<F::Output> {
    assert!(
        !windlass_core::context::in_task(),
        "block_until_or inside a task would block its worker: use timeout_at there"
    );
    os::fine_timers();
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(bell.clone());
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return Some(output);
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            match left.checked_sub(SPIN) {
                Some(coarse) if !coarse.is_zero() => bell.wait(coarse),
                _ => std::hint::spin_loop(),
            }
            if bell.take() {
                break;
            }
        }
    }
}

/// Wakes a thread that sleeps for a time.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    notified: Condvar,
}

impl Bell {
    /// Sleeps until it rings or the time is over.
    fn wait(&self, time: Duration) {
        let rung = self.rung.lock();
        if !*rung {
            // The one timer of this thread: a ring wakes it before.
            drop(self.notified.wait_for(rung, time));
        }
    }

    /// Whether it has rung since the last time.
    fn take(&self) -> bool {
        std::mem::take(&mut *self.rung.lock())
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.rung.lock() = true;
        self.notified.notify_one();
    }
}

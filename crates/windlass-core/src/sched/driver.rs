//! Where one parked worker sleeps: I/O readiness and timers.
//!
//! The engine knows only this trait; the runtime brings the driver. The worker that holds the
//! [`DriverGuard`] calls `sleep` and `deliver`, or `poll`; one thread at a time.

use crate::sched::idle::Idle;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Decides which thread may use the driver.
///
/// **While a worker is parked, the driver has a guard, or an awake worker will look at it before it
/// parks or leaves.** `SLEEP.md` says why that holds, and the models of
/// `tests/loom/driver_guard.rs` check it.
#[derive(Debug, Default)]
pub struct DriverLock {
    is_taken: AtomicBool,
}

/// The right to use the driver, until this is dropped.
#[derive(Debug)]
#[must_use = "the driver is free when this is dropped"]
pub struct DriverGuard<'a>(&'a DriverLock);

impl DriverLock {
    /// Takes the driver, unless another thread has it.
    #[inline]
    pub fn try_take(&self) -> Option<DriverGuard<'_>> {
        // Acquire: pairs with the Release in the guard's drop: what the last holder did with the
        // driver is done.
        if self.is_taken.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(DriverGuard(self))
    }

    /// True if no thread has the driver, at a glance.
    #[inline]
    pub fn is_deserted(&self) -> bool {
        // Relaxed: a hint, unless a fence says more (`leave`).
        !self.is_taken.load(Ordering::Relaxed)
    }

    /// A worker leaves the idle set for good. True: the driver is deserted, and the caller
    /// announces that, because others may have parked elsewhere while the worker had the driver.
    ///
    /// The worker looks after the fence in `Idle::leave`, and one that parks tries to take the
    /// driver after the fence in `Idle::publish`: whichever fence is first, one of the two sees the
    /// other.
    pub fn leave(&self, idle: &Idle, was_searching: bool) -> bool {
        idle.leave(was_searching);
        self.is_deserted()
    }
}

impl Drop for DriverGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `try_take`. A store would do: it comes after every
        // failed swap that read our own. loom does not know that, and the model needs to.
        self.0.is_taken.swap(false, Ordering::Release);
    }
}

/// Sleeps until something outside happens, and can be rung from any thread.
pub trait Driver: Send + Sync + 'static {
    /// Sleeps until an event is due or [`ring`](Driver::ring) is called, and keeps what happened
    /// for [`deliver`](Driver::deliver). A ring that comes before the sleep makes it return at
    /// once.
    fn sleep(&self);

    /// Wakes the tasks whose events `sleep` saw. By now the worker counts as awake and searching,
    /// so that these wakes follow the same rules as all others.
    fn deliver(&self);

    /// Looks once without sleeping and delivers, at most `MAX_IO_COMPLETIONS` events; called by
    /// busy workers at their interval, with the time at which they last looked at the clock.
    fn poll(&self, now: u64);

    /// True if events may be waiting that only a look can find: there are sockets.
    fn has_sources(&self) -> bool {
        false
    }

    /// Makes the current or the next `sleep` return.
    fn ring(&self);
}

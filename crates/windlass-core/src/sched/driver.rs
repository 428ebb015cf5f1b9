//! Where one parked worker sleeps: I/O readiness and timers.
//!
//! The engine knows only this trait; the runtime brings the driver.

/// Sleeps until something outside happens, and can be rung from any thread.
pub trait Driver: Send + Sync + 'static {
    /// Sleeps until an event is due or [`ring`](Driver::ring) is called, and wakes the tasks whose
    /// events are due. A ring that comes before the sleep makes it return at once. Only one worker
    /// is in here at a time.
    fn sleep(&self);

    /// Looks once without sleeping, at most `most` events; called by busy workers, one at a time.
    fn poll(&self, most: usize);

    /// Makes the current or the next `sleep` return.
    fn ring(&self);
}

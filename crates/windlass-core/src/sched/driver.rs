//! Where one parked worker sleeps: I/O readiness and timers.
//!
//! The engine knows only this trait; the runtime brings the driver. Whoever holds the driver's seat
//! calls `sleep` and `deliver`, or `poll`; one thread at a time.

/// Sleeps until something outside happens, and can be rung from any thread.
pub trait Driver: Send + Sync + 'static {
    /// Sleeps until an event is due or [`ring`](Driver::ring) is called, and keeps what happened for
    /// [`deliver`](Driver::deliver). A ring that comes before the sleep makes it return at once.
    fn sleep(&self);

    /// Wakes the tasks whose events `sleep` saw. By now the worker counts as awake and searching, so
    /// that these wakes follow the same rules as all others.
    fn deliver(&self);

    /// Looks once without sleeping and delivers, at most `MAX_IO_COMPLETIONS` events; called by busy
    /// workers at their interval, with the time at which they last looked at the clock.
    fn poll(&self, now: u64);

    /// True if events may be waiting that only a look can find: there are sockets.
    fn has_sources(&self) -> bool {
        false
    }

    /// Makes the current or the next `sleep` return.
    fn ring(&self);
}

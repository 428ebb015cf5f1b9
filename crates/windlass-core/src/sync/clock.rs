//! The monotonic clock.
//!
//! Times are nanoseconds since the first reading of this process, so that they fit one atomic
//! word. In a simulation it is the world's time; under the model checkers time stands still.

/// Nanoseconds since this process first looked.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
#[allow(clippy::disallowed_types, reason = "this is the shim")]
pub fn now() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    if let Some(now) = super::with_world(|world| world.map(super::World::now)) {
        return now;
    }
    let origin = ORIGIN.get_or_init(Instant::now);
    origin.elapsed().as_nanos() as u64
}

/// Nanoseconds since this process first looked: always 0 under a model checker.
#[cfg(any(windlass_loom, windlass_shuttle))]
pub fn now() -> u64 {
    0
}

//! The monotonic clock.
//!
//! Times are nanoseconds since the first reading of this process, so that they fit one atomic
//! word. In a simulation it is the world's time; under the model checkers time stands still.

/// Nanoseconds since this process first looked.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub fn now() -> u64 {
    if let Some(now) = super::with_world(|world| world.map(super::World::now)) {
        return now;
    }
    // In this order: the thread that fixes the origin does so before we look.
    let origin = origin();
    real_now() - origin
}

/// Nanoseconds since 1970, as the machine's own clock has it. In a simulation time begins in
/// September 2020.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
#[allow(clippy::disallowed_types, reason = "this is the shim")]
pub fn wall() -> u64 {
    use std::time::SystemTime;
    const SIMULATED: u64 = 1_600_000_000_000_000_000;
    if let Some(now) = super::with_world(|world| world.map(super::World::now)) {
        return SIMULATED + now;
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// The standard library's moment, for conversions.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
#[allow(clippy::disallowed_types, reason = "this is the shim")]
pub type StdInstant = std::time::Instant;

/// One moment on both clocks, looked at once: conversions there and back give the same moment.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
fn anchor() -> (StdInstant, u64) {
    static ANCHOR: std::sync::OnceLock<(StdInstant, u64)> = std::sync::OnceLock::new();
    *ANCHOR.get_or_init(|| {
        let origin = origin();
        (StdInstant::now(), real_now() - origin)
    })
}

/// Nanoseconds since this process first looked, at a moment of the standard library; 0 for one
/// before.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub fn from_std(moment: StdInstant) -> u64 {
    let (std, own) = anchor();
    let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    match moment.checked_duration_since(std) {
        Some(after) => own.saturating_add(nanos(after)),
        None => own.saturating_sub(nanos(std.saturating_duration_since(moment))),
    }
}

/// The standard library's moment so many nanoseconds after this process first looked. One that it
/// cannot tell is some thirty years from now.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub fn into_std(nanos: u64) -> StdInstant {
    const THIRTY_YEARS: std::time::Duration = std::time::Duration::from_secs(86_400 * 365 * 30);
    let (std, own) = anchor();
    let distance = std::time::Duration::from_nanos(nanos.abs_diff(own));
    let moment = match nanos >= own {
        true => std.checked_add(distance.min(THIRTY_YEARS)),
        false => std.checked_sub(distance),
    };
    moment.unwrap_or(std)
}

/// When this process first looked. A moment earlier than that moment, so that no time is 0.
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
fn origin() -> u64 {
    static ORIGIN: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *ORIGIN.get_or_init(|| real_now().saturating_sub(1))
}

/// The system's monotonic clock, in one call and without the detour over a struct of two fields.
#[cfg(all(unix, not(any(windlass_loom, windlass_shuttle))))]
fn real_now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the place is valid; the monotonic clock exists everywhere.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(all(not(unix), not(any(windlass_loom, windlass_shuttle))))]
#[allow(clippy::disallowed_types, reason = "this is the shim")]
fn real_now() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}

/// Nanoseconds since 1970: always 0 under a model checker.
#[cfg(any(windlass_loom, windlass_shuttle))]
pub fn wall() -> u64 {
    0
}

/// Nanoseconds since this process first looked: always 0 under a model checker.
#[cfg(any(windlass_loom, windlass_shuttle))]
pub fn now() -> u64 {
    0
}

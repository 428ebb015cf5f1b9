//! The first thing that a program does may be a sleep. This is a program of its own: no other test
//! may have made a runtime before.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

use std::time::{Duration, Instant};

use windlass_runtime::time::sleep;

/// Nothing here names a runtime: the hooks that start the default one are installed before `main`.
#[test]
fn a_sleep_before_any_runtime_starts_the_default_one() {
    let began = Instant::now();
    windlass_core::block_on(sleep(Duration::from_millis(5)));
    assert!(began.elapsed() >= Duration::from_millis(5));
}

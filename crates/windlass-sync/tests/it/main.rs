//! Channels, locks, cancellation and time on a real runtime.
#![cfg(not(any(windlass_loom, windlass_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

mod broadcast;
mod cancel;
mod channel;
mod guards;
mod permits;
mod set_once;
#[path = "../../../windlass-runtime/tests/it/support.rs"]
mod support;
mod sync;
mod time;
mod watch;

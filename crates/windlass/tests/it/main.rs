//! The macros, and what several front ends promise together.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

#[cfg(all(feature = "http", feature = "tokio-guest"))]
mod guest;
mod macros;
mod messages;
mod structured;
#[path = "../../../windlass-runtime/tests/it/support.rs"]
mod support;
mod waiters;

//! The engine from the outside: what a front end relies on.
#![cfg(not(any(windlass_loom, windlass_shuttle)))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

mod bodies;
mod driver;

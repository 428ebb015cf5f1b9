//! What running graphs do, one module per promise.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

mod docs;
mod run;
#[path = "../../../windlass-plan/tests/it/support.rs"]
mod support;

//! Sockets, files, commands and signals.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

mod commands;
mod fs;
mod io;
mod net;
mod signals;
#[path = "../../../windlass-runtime/tests/it/support.rs"]
mod support;

//! What the component types do, one module per kind.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

mod backpressure;
mod csv;
mod docs;
mod exec;
mod files;
mod http;
mod one_language;
mod sources;
mod stage;
mod tcp;
mod transforms;
mod udp;

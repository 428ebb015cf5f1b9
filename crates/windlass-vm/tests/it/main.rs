//! Guests by their behaviour, on both placements; a tiny VM is the guest.
#![cfg(not(windlass_loom))]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests count with plain atomics and threads of their own"
)]

mod life;
mod promises;
mod replay;
mod stuck;
mod support;
mod tiny;

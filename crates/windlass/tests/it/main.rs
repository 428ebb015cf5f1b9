//! What the runtime promises its users, one module per behaviour.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

mod announce;
mod blocking;
mod build;
mod cancel;
mod channel;
mod commands;
mod coroutine;
mod dispatch;
mod fairness;
mod fork_join;
mod fs;
mod groups;
#[cfg(all(feature = "http", feature = "tokio-guest"))]
mod guest;
mod join;
mod local;
mod macros;
mod net;
mod observe;
mod resize;
mod runtimes;
mod shutdown;
mod signals;
mod simulator;
mod structured;
mod support;
mod sync;
mod time;
mod tracing;
mod wakeups;

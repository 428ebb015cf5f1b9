//! What the runtime promises its users, one module per behaviour.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests use the standard library directly"
)]

mod announce;
mod block_in_place;
mod blocking;
mod build;
mod coroutine;
mod current_thread;
mod dispatch;
mod fairness;
mod fork_join;
mod groups;
mod join;
mod join_set;
mod local;
mod observe;
mod resize;
mod runtimes;
mod shutdown;
mod simulator;
mod support;
mod tracing;
mod wakeups;

//! Safe programs that try to break the runtime: use after free, foreign bytes, hangs, lost timers.
//!
//! One file per area. They run as ordinary tests, and under AddressSanitizer (`cargo xtask san`),
//! which sees what an ordinary run may survive by luck.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "programs like those of users"
)]
#![cfg(not(any(windlass_loom, windlass_shuttle)))]

mod blocking;
mod coroutines;
mod destructors;
mod endings;
mod fork_join;
mod late_ends;
mod lent_thread_locals;
mod local_sets;
mod support;
mod thread_locals;
mod turns;
mod workers_that_leave;

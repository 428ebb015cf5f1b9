//! Processes by their behaviour. What is about time runs in the simulator, exactly; a twin in real
//! time allows ten times as much.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tests count with plain atomics and threads of their own"
)]

mod bonds;
mod bytes;
mod child_address;
mod commands;
mod groups;
mod life;
mod mail;
mod names;
mod payloads;
mod places;
mod promises;
mod pub_sub;
mod relay;
mod shutdown;
mod supervisors;
mod support;
mod timers;
mod trees;

//! The values that cross boundaries: messages of processes, arguments of guests, payloads of graphs.
//!
//! | item | what it is |
//! |---|---|
//! | [`Payload`] | a value that any process understands, also one in a guest language |
//! | [`PayloadList`], [`PayloadMap`] | what a payload contains; dropped and cloned without recursion |
//! | [`Pid`] | the name of a process |
//! | [`hex`](hex()), [`unhex`] | bytes as hexadecimal digits |
//! | [`graph`] | what the messages of a graph carry |
//!
//! This crate knows no runtime. Applications use the `windlass` crate, which re-exports all of this.
#![forbid(unsafe_code)]

mod containers;
pub mod graph;
mod hex;
mod payload;
mod pid;

pub use containers::{PayloadList, PayloadMap};
pub use hex::{hex, unhex};
pub use payload::{Payload, Payloads};
pub use pid::{NodeId, ParsePidError, Pid};

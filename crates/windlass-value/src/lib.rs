//! The value that crosses boundaries: messages of processes, arguments of guests, payloads of
//! graphs, lines of recordings.
//!
//! | item | what it is |
//! |---|---|
//! | [`Payload`] | a value that every front end understands |
//! | [`PayloadList`], [`PayloadMap`] | lists and maps of payloads; dropped and cloned without recursion |
//! | [`Opaque`] | a Rust value in a payload |
//! | [`Data`] | a type that a typed port of a graph carries |
//! | [`Pid`] | the name of a process |
//! | [`Payload::to_json`], [`recorded`] | payloads as JSON, for other programs and for recordings |
//! | [`Payload::to_bytes`] | payloads in a compact form |
//! | [`hex`](hex()), [`unhex`], [`base64`] | bytes as text |
//!
//! This crate knows no runtime. Applications use the `windlass` crate, which re-exports all of
//! this.
#![forbid(unsafe_code)]

pub mod base64;
mod binary;
mod containers;
mod data;
mod debug;
mod hex;
#[cfg(feature = "json")]
mod json;
mod opaque;
mod payload;
mod pid;
mod unwritable;

pub use binary::DecodeError;
pub use containers::{PayloadList, PayloadMap};
pub use data::Data;
pub use hex::{hex, unhex};
#[cfg(feature = "json")]
pub use json::{Unrecorded, recorded};
pub use opaque::Opaque;
pub use payload::{Payload, Payloads};
pub use pid::{NodeId, ParsePidError, Pid};
pub use unwritable::Unwritable;
